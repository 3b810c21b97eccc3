"""Policy documents of several kinds become one text, and what is none is refused in words."""

import io
import sys

import pytest

from workers.errors import InvalidRecord, RewardError
from workers.policy_rules.documents import read_document
from workers.policy_rules.splitting import split_rules

HTML = b"""<html><head><title>x</title><style>p{}</style></head><body><nav>Home</nav>
<h1>Refunds</h1><p>You must <b>ask</b> before&nbsp;a refund.</p><script>must()</script>
<ul><li><p>Do not promise a date.</p></li><li>At most 3 refunds<br>a day.</li></ul></body></html>"""


def statements(name: str, data: bytes) -> list[tuple[str, str]]:
    return [(rule.scope, rule.statement) for rule in split_rules(read_document(name, data))]


def test_html() -> None:
    assert statements("a.html", HTML) == [
        ("Refunds", "You must ask before a refund."),
        ("Refunds", "Do not promise a date."),
        ("Refunds", "At most 3 refunds a day."),
    ]


def test_text_with_other_encodings_and_line_ends() -> None:
    assert read_document("a.md", b"\xef\xbb\xbf# A\r\nYou must ask.\r") == "# A\nYou must ask.\n"
    assert read_document("a.txt", "Must é".encode("utf-16")) == "Must é"


@pytest.mark.parametrize(
    ("name", "data", "words"),
    [
        ("a.exe", b"x", "must be one of"),
        ("a", b"x", "must be one of"),
        ("a.md", b"\xff\x00a", "not UTF-8: byte 0"),
        ("a.md", b" \n", "no text"),
        ("a.html", b"<script>must</script>", "no text"),
        ("a.md", b"x" * 500_001, "at most 500,000"),
    ],
)
def test_what_is_refused(name: str, data: bytes, words: str) -> None:
    with pytest.raises(InvalidRecord, match=words):
        read_document(name, data)


@pytest.mark.parametrize(("ending", "library"), [("pdf", "pypdf"), ("docx", "docx")])
def test_a_missing_library_is_named(ending: str, library: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, library, None)
    with pytest.raises(RewardError, match="pip install pypdf python-docx"):
        read_document(f"a.{ending}", b"x")


def test_docx_of_the_library_itself() -> None:
    docx = pytest.importorskip("docx", reason="needs the extra `documents`")
    document = docx.Document()
    document.add_heading("Refunds", 1)
    document.add_paragraph("You must ask before a refund.")
    document.add_paragraph("Do not promise a date.", style="List Bullet")
    table = document.add_table(rows=1, cols=2)
    table.cell(0, 0).text, table.cell(0, 1).text = "Gold members:", "they can get at most 3 bags."
    out = io.BytesIO()
    document.save(out)
    assert statements("a.docx", out.getvalue()) == [
        ("Refunds", "You must ask before a refund."),
        ("Refunds", "Do not promise a date."),
        ("Refunds › Gold members", "they can get at most 3 bags."),
    ]
    for broken in (b"PK\x03\x04", out.getvalue()[:2000], b"no zip"):
        with pytest.raises(InvalidRecord, match="DOCX cannot be read"):
            read_document("a.docx", broken)


def test_pdf_lines_are_joined() -> None:
    pypdf = pytest.importorskip("pypdf", reason="needs the extra `documents`")
    from pypdf.generic import DecodedStreamObject, DictionaryObject, NameObject

    writer = pypdf.PdfWriter()
    page = writer.add_blank_page(400, 400)
    font = DictionaryObject(
        {
            NameObject(f"/{key}"): NameObject(f"/{value}")
            for key, value in (("Type", "Font"), ("Subtype", "Type1"), ("BaseFont", "Helvetica"))
        }
    )
    fonts = DictionaryObject({NameObject("/F1"): writer._add_object(font)})
    page[NameObject("/Resources")] = DictionaryObject({NameObject("/Font"): fonts})
    lines = [
        "Refunds",
        "You must ask before a refund that is",
        "more than 50 dollars.",
        "Do not promise a date.",
    ]
    drawn = " ".join(f"({line}) Tj 0 -16 Td" for line in lines)
    stream = DecodedStreamObject()
    stream.set_data(f"BT /F1 12 Tf 20 350 Td {drawn} ET".encode())
    page[NameObject("/Contents")] = writer._add_object(stream)
    out = io.BytesIO()
    writer.write(out)
    assert [rule for _, rule in statements("a.pdf", out.getvalue())] == [
        "You must ask before a refund that is more than 50 dollars.",
        "Do not promise a date.",
    ]
    for broken in (b"%PDF-1.4", b"nothing"):
        with pytest.raises(InvalidRecord, match="PDF cannot be read"):
            read_document("a.pdf", broken)
