"""Policy documents as one text: Markdown's headings (`#`) and list items (`-`), paragraphs apart by an empty line.

`python -m workers.policy_rules.documents FILE OUT` writes the text of FILE, so that a hostile PDF or DOCX takes the
time and memory of a child process only. Status 2: refused, with a sentence.
"""

import html
import sys
import zipfile
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

from workers.errors import InvalidRecord, RewardError
from workers.policy_rules.splitting import MAX_DOCUMENT_CHARACTERS
from workers.schema.patterns import SPACE, TextPattern

TEXT_ENDINGS = (".md", ".markdown", ".txt", ".html", ".htm")
PACKED_ENDINGS = (".pdf", ".docx")  # read by a library that is an optional extra
MAX_FILE_BYTES = 20_000_000
_MAX_UNPACKED_BYTES = 100_000_000
_EXTRA = "Install both readers with `pip install pypdf python-docx`, or paste the text of the document."
_SPACES = TextPattern(f"[{SPACE}]+")
_BLANKS = TextPattern("[ \t\u00a0]+")
_GAP = TextPattern(r" ?\n(?: ?\n)+ ?")
_HEADING_STYLE = TextPattern(r"Heading (\d)|Title")
_BULLET = TextPattern(r"^[•●▪◦‣∙·]\s*")
_BEGINS_ITEM = TextPattern(r"- |#|\(?\d{1,3}[.)] ")
_HEADINGS = {f"h{level}": level for level in range(1, 7)}
_BREAKS = {
    "p",
    "div",
    "section",
    "article",
    "tr",
    "table",
    "ul",
    "ol",
    "blockquote",
    "dd",
    "dt",
    "header",
    "footer",
}
_UNREAD = {"script", "style", "template", "noscript", "head", "nav"}


def read_document(name: str, data: bytes) -> str:
    """name: of the file; its ending says what it is. Raises InvalidRecord for what is no such document, and RewardError
    where the library for it is not installed."""
    ending = ending_of(name)
    if len(data) > MAX_FILE_BYTES:
        raise InvalidRecord(f"The file has more than {MAX_FILE_BYTES // 1_000_000} MB.", pointer="/file")
    if ending == ".pdf":
        text = _pdf_text(data)
    elif ending == ".docx":
        text = _docx_text(data)
    elif ending in TEXT_ENDINGS:
        text = _decoded(data)
        text = html_text(text) if ending in (".html", ".htm") else text
    else:
        raise InvalidRecord(
            f"A policy document must be one of {', '.join((*TEXT_ENDINGS, *PACKED_ENDINGS))}, not {name[:100]!r}.",
            pointer="/file",
        )
    return require_document(text)


def ending_of(name: str) -> str:
    """Of the name of a file, with its dot and in small letters; empty without one."""
    _, dot, ending = name.rpartition(".")
    return f"{dot}{ending}".lower() if dot else ""


def require_document(text: str) -> str:
    """The text with one kind of line end. Raises InvalidRecord for one that is empty or too long."""
    text = text.replace("\r\n", "\n").replace("\r", "\n").replace("\ufeff", "").replace("\x00", "")
    if not text.strip():
        raise InvalidRecord(
            "The document has no text. A scanned PDF needs text recognition first; then upload it again.",
            pointer="/text",
        )
    if len(text) > MAX_DOCUMENT_CHARACTERS:
        raise InvalidRecord(
            f"The document has {len(text):,} characters; at most {MAX_DOCUMENT_CHARACTERS:,} are read. Split it.",
            pointer="/text",
        )
    return text


def html_text(source: str) -> str:
    parser = _HtmlText()
    parser.feed(source)
    parser.close()
    return _tidy("".join(parser.parts))


class _HtmlText(HTMLParser):
    """Headings and list items as Markdown; scripts, styles and navigation are left out."""

    def __init__(self) -> None:
        super().__init__(convert_charrefs=True)
        self.parts: list[str] = []
        self._unread: list[str] = []

    def handle_starttag(self, tag: str, attrs: Any) -> None:
        if tag in _UNREAD:
            self._unread.append(tag)
        elif tag in _HEADINGS:
            self.parts.append(f"\n\n{'#' * _HEADINGS[tag]} ")
        elif tag == "li":
            self.parts.append("\n\n- ")
        elif tag == "br":
            self.parts.append("\n")
        elif tag in ("td", "th"):
            self.parts.append(" ")
        elif tag in _BREAKS:
            self._break()

    def handle_endtag(self, tag: str) -> None:
        if tag in self._unread:
            del self._unread[self._unread.index(tag) :]
        elif tag in _HEADINGS or tag in _BREAKS or tag == "li":
            self._break()

    def handle_data(self, data: str) -> None:
        if not self._unread:
            text = _SPACES.sub(" ", data)
            self.parts.append(
                text.lstrip() if not self.parts or self.parts[-1].endswith((" ", "\n")) else text
            )

    def _break(self) -> None:
        if not (self.parts and self.parts[-1].endswith("- ")):  # a paragraph in a list item
            self.parts.append("\n\n")


def _pdf_text(data: bytes) -> str:
    try:
        import pypdf
    except ImportError:
        raise RewardError(f"Reading PDF needs the library pypdf, which is not installed. {_EXTRA}") from None
    import io

    try:
        reader = pypdf.PdfReader(io.BytesIO(data))
        if reader.is_encrypted and not reader.decrypt(""):
            raise InvalidRecord("The PDF is locked with a password; save it without one.", pointer="/file")
        pages = [page.extract_text() or "" for page in reader.pages]
    except (
        pypdf.errors.PyPdfError,
        ValueError,
        KeyError,
        TypeError,
        AttributeError,
        RecursionError,
    ) as error:
        raise InvalidRecord(f"The PDF cannot be read: {str(error)[:200]}", pointer="/file") from None
    return _joined_lines("\n".join(pages))


def _docx_text(data: bytes) -> str:
    try:
        import docx
        from docx.opc.exceptions import OpcError
    except ImportError:
        raise RewardError(
            f"Reading DOCX needs the library python-docx, which is not installed. {_EXTRA}"
        ) from None
    import io

    try:
        with zipfile.ZipFile(io.BytesIO(data)) as archive:
            if sum(entry.file_size for entry in archive.infolist()) > _MAX_UNPACKED_BYTES:
                raise InvalidRecord("The DOCX unpacks to more than 100 MB.", pointer="/file")
        parts = [_docx_block(block) for block in docx.Document(io.BytesIO(data)).iter_inner_content()]
    except (zipfile.BadZipFile, KeyError, ValueError, OpcError) as error:
        raise InvalidRecord(f"The DOCX cannot be read: {str(error)[:200]}", pointer="/file") from None
    return _tidy("\n\n".join(filter(None, parts)))


def _docx_block(block: Any) -> str:
    """A paragraph, or the rows of a table, each a line."""
    if hasattr(block, "rows"):
        return "\n\n".join(" ".join(cell.text.strip() for cell in row.cells) for row in block.rows)
    style = (block.style.name or "") if block.style is not None else ""
    text = str(block.text).strip()
    heading = _HEADING_STYLE.fullmatch(style)
    if heading and text:
        return f"{'#' * min(int(heading[1] or 1), 6)} {text}"
    is_item = style.startswith("List") or (block._p.pPr is not None and block._p.pPr.numPr is not None)
    return f"- {text}" if is_item and text else text


def _joined_lines(text: str) -> str:
    """Lines that a page broke, joined; a line that begins an item or that follows a full stop begins a paragraph."""
    lines = list[str]()
    for raw in text.splitlines():
        line = _BULLET.sub("- ", raw.strip())
        if not line:
            lines.append("")
        elif lines and lines[-1] and not _BEGINS_ITEM.match(line) and not _ends(lines[-1], line):
            joined = lines[-1][:-1] if lines[-1].endswith("-") and line[0].islower() else f"{lines[-1]} "
            lines[-1] = joined + line
        else:
            lines.append(line)
    return _tidy("\n\n".join(line for line in lines if line))


def _ends(line: str, following: str) -> bool:
    """Whether `line` ends a paragraph: a sentence ended, or it is short, capitalised and without a stop: a heading."""
    if line[-1] in ".!?:":
        return len(line) < 60 or following[0].isupper()
    return len(line) < 50 and line[0].isupper() and following[0].isupper()


def _decoded(data: bytes) -> str:
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        if data[:2] in (b"\xff\xfe", b"\xfe\xff"):
            return data.decode("utf-16", "replace")
        raise InvalidRecord(
            f"The file is not UTF-8: byte {error.start} cannot be read. Save it as UTF-8.", pointer="/file"
        ) from None


def _tidy(text: str) -> str:
    text = html.unescape(text) if "&nbsp;" in text else text
    text = _BLANKS.sub(" ", text)
    return _GAP.sub("\n\n", text).strip() + "\n"


def main() -> int:
    source, out = map(Path, sys.argv[1:3])
    try:
        out.write_text(read_document(source.name, source.read_bytes()), encoding="utf-8")
    except RewardError as error:
        sys.stderr.write(f"{error.message}\n")
        return 2
    return 0


if __name__ == "__main__":
    sys.exit(main())
