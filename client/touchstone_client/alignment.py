"""Where a prompt ends in a text that a tokenizer has decoded: prompt and response, not always letter for letter.

Tokenizers compose characters, clean spaces up, drop carriage returns, put marks and padding in front, and trainers cut
prompts that are too long at their beginning. The server aligns OpenRLHF's queries by the same function.
"""

import unicodedata
from dataclasses import dataclass

_LONGEST_MARK = 64
_LEAST_COMMON = 8  # characters of a cut prompt that must be left
_EDGES = (("<|", "|>"), ("<｜", "｜>"), ("<", ">"), ("[", "]"))
_PLAIN_MARKS = frozenset(
    ("<s>", "</s>", "<bos>", "<eos>", "<pad>", "<unk>", "<PAD>", "[PAD]", "[CLS]", "[gMASK]", "<sop>")
)


@dataclass(frozen=True, slots=True)
class Alignment:
    """is_exact: whether the query has its prompt letter for letter."""

    response: str
    is_exact: bool


def align(query: str, prompt: str) -> Alignment | None:
    """The response of a query: what follows its prompt, or the longest end of the prompt that the query begins with,
    after marks and padding. None where the query begins with neither."""
    start = query.find(prompt)
    if start == 0 or (start > 0 and _is_mark(query[:start])):
        return Alignment(query[start + len(prompt) :], is_exact=True)
    begin = _after_marks(query)
    text, ends = _comparable(query[begin:])
    wanted, _ = _comparable(prompt[_after_marks(prompt) :])
    if not wanted:
        return None
    common = len(wanted) if text.startswith(wanted) else _overlap(wanted, text)
    if common < len(wanted) and common < _LEAST_COMMON:
        return None
    response = query[begin + ends[common - 1] :]
    spaces = len(prompt) - len(prompt.rstrip())
    return Alignment(_without_spaces(response, spaces), is_exact=False)


def _is_mark(text: str) -> bool:
    """Whether all of a text is special tokens; one that is not known is told by its brackets."""
    text = text.strip()
    shape = text[:1] + text[-1:]
    return _after_marks(text) == len(text) or (len(text) <= _LONGEST_MARK and shape in ("<>", "[]"))


def _after_marks(text: str) -> int:
    """Where a text begins, after special tokens and the spaces next to them."""
    at = 0
    while True:
        rest = text[at : at + _LONGEST_MARK]
        skipped = len(rest) - len(rest.lstrip())
        mark = _mark_at(rest[skipped:])
        if not mark:
            return at
        at += skipped + len(mark)


def _mark_at(text: str) -> str:
    for opening, closing in _EDGES:
        if not text.startswith(opening):
            continue
        mark = text[: text.find(closing, len(opening)) + len(closing)]
        if mark in _PLAIN_MARKS or (len(opening) == 2 and _is_edge(mark)):
            return mark
    return ""


def _is_edge(mark: str) -> bool:
    """Whether a mark stands around a conversation, rather than before a turn."""
    inner = mark.lower().strip("<>|｜").replace("▁", "_")
    names = (
        "begin_of_text",
        "end_of_text",
        "endoftext",
        "startoftext",
        "begin_of_sentence",
        "end_of_sentence",
        "pad",
    )
    return inner in names or "pad" in inner.split("_")


def _comparable(text: str) -> tuple[str, list[int]]:
    """The text decomposed and without spaces; where each of its characters ends in the text."""
    found: list[str] = []
    ends: list[int] = []
    start = 0
    while start < len(text):
        end = start + 1
        while end < len(text) and unicodedata.combining(text[end]):
            end += 1
        for character in unicodedata.normalize("NFKD", text[start:end]):
            if not character.isspace() and character not in "\u200b\ufeff▁":
                found.append(character)
                ends.append(end)
        start = end
    return "".join(found), ends


def _overlap(wanted: str, text: str) -> int:
    """The length of the longest end of `wanted` that `text` begins with (Knuth, Morris & Pratt 1977)."""
    pattern = text[: len(wanted)]
    borders = [0] * len(pattern)
    length = 0
    for place in range(1, len(pattern)):
        while length and pattern[place] != pattern[length]:
            length = borders[length - 1]
        length += pattern[place] == pattern[length]
        borders[place] = length
    length = 0
    for character in wanted:
        while length and (length == len(pattern) or character != pattern[length]):
            length = borders[length - 1]
        length += bool(pattern) and character == pattern[length]
    return length


def _without_spaces(text: str, most: int) -> str:
    """Without the spaces that end the prompt."""
    spaces = len(text) - len(text.lstrip())
    return text[min(spaces, most) :]
