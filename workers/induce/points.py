"""A comment taken apart: the points it makes, each as it was written.

A point is a sentence, an item of a list, or one side of a contrast ("polite, but it never looked the order up"), since
the two sides praise and blame different things. Sentences end as they do in most scripts (. ! ? and their fullwidth
forms, the danda, line breaks); a full stop within a number, a path, an abbreviation or a call ends none.
"""

import re

from workers.schema.patterns import SPACE, PatternMatch, TextPattern

MOST = 200  # points of one comment
LONGEST = 1000  # characters of one point
_READ = MOST * LONGEST  # characters of a comment; the rest is not looked at
# Whitespace that the expressions below would look through again from each of its characters.
_BLANK = TextPattern(rf"[{SPACE}]{{40,}}")
_NEAR = 20  # characters before an end among which an abbreviation is looked for
_SHORTEST = 2  # words; fewer are put to the point before
_ENDS = re.compile(
    r"(?:(?<=[.!?])|(?<=[.!?][\"')\]]))\s+(?=[\"'(\[]*[^\Wa-z_])|(?<=[。！？।])|[\r\n]+|(?<=;)\s+"
)
_ITEM = re.compile(r"^\s*(?:[-*•‣]|\(?\d{1,2}[.)])\s+")
_CONTRAST = TextPattern(
    rf"(?i)(?:[,;:][{SPACE}]*|[{SPACE}]+[-–—][{SPACE}]*)"
    r"(but|however|although|though|yet|whereas|aber|jedoch|mais|pero|sin embargo)\b"
    rf"|[{SPACE}]+(but|however|whereas)\b"
)
_LEADS = re.compile(
    r"^(?:but|however|although|though|yet|whereas|and|also|aber|jedoch|mais|pero)\b[,:]?\s*", re.IGNORECASE
)
_ABBREVIATED = re.compile(
    r"(?:\b(?:e\.g|i\.e|etc|vs|cf|approx|no|nr|fig|z\.b|bzw|dr|mr|mrs|ms)\.)$", re.IGNORECASE
)


def points_of(comment: str) -> list[str]:
    """In their order; none of a comment without a word. Of longer ones than MOST points the first."""
    found: list[str] = []
    for sentence in _sentences(_BLANK.sub(_short, comment[:_READ])):
        parts = _sides(_ITEM.sub("", sentence))
        for part in parts:
            point = _LEADS.sub("", part.strip(" \t,;:–—-")).strip()
            if not re.search(r"\w", point):
                continue
            if found and len(parts) == 1 and len(point.split()) < _SHORTEST and point.isascii():
                found[-1] = f"{found[-1]} {point}"
            else:
                found.append(point[:LONGEST])
            if len(found) == MOST:
                return found
    return found


def _short(blank: PatternMatch) -> str:
    return "\n" if "\n" in blank[0] or "\r" in blank[0] else " "


def _sides(sentence: str) -> list[str]:
    """Cut before each word of contrast, which begins the next side."""
    sides, begins = [], 0
    for found in _CONTRAST.finditer(sentence):
        sides.append(sentence[begins : found.start()])
        begins = max(found.start(1), found.start(2))
    return [*sides, sentence[begins:]]


def _sentences(comment: str) -> list[str]:
    """Abbreviations put together with what follows them."""
    out: list[str] = []
    for piece in _ENDS.split(comment):
        if out and _ABBREVIATED.search(out[-1][-_NEAR:]):
            out[-1] = f"{out[-1]} {piece}"
        elif piece and piece.strip():
            out.append(piece)
    return out
