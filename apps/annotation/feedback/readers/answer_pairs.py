"""`answer-pairs`: which of two answers to a prompt is better, as data sets of judges say it: a `winner`, `preferred` or
`label` that names the answer (`A`, `response_b`, `2`, `tie`, `A>B`), or a score of each (`score_A`, `score_B`).

A number that names no answer is refused, but for Auto-J's `response 1` and `response 2`, whose label is 0 for the
first, 1 for the second and 2 for a tie.
"""

from collections.abc import Iterator
from typing import Any

from apps.annotation.feedback.incoming import Incoming
from apps.annotation.feedback.readers.answer_rows import (
    Places,
    answer_reader,
    by_sign,
    label_number,
    preference,
)
from apps.trajectories.formats.data_rows import answer_pairs as rows
from apps.trajectories.formats.data_rows.answer_pairs import AnswerPair
from workers.errors import InvalidRecord
from workers.schema import Choice

LABELS = (
    *(
        "winner",
        "preferred",
        "preference",
        "label",
        "better",
        "chosen",
        "choice",
        "verdict",
        "human_preference",
    ),
    *("human_label", "better_response", "preferred_response"),
)
_SCORES = ("score", "rating", "reward", "human_score", "scores")
_ANNOTATORS = ("annotator", "annotator_id", "judge", "judge_model", "labeler", "worker_id")
_WORDS = (
    "response",
    "output",
    "answer",
    "completion",
    "generation",
    "model",
    "assistant",
    "option",
    "resp",
    "text",
)
_TIES: dict[str, Choice] = {
    **dict.fromkeys(("tie", "tied", "equal", "same", "draw", "both", "both good", "neutral", "c"), "tie"),
    **dict.fromkeys(("neither", "both bad", "bothbad", "tie bothbad", "none"), "both_bad"),
}
_AUTO_J: dict[int, Choice] = {0: "a", 1: "b", 2: "tie"}
_LONGEST = 100  # characters of a label


def _labels(row: dict[str, Any], places: Places) -> Iterator[Incoming]:
    pair = rows.answer_pair(row)
    assert pair is not None  # the rows have two answers, else there are not two places
    name = next((each for each in LABELS if row.get(each) is not None and each not in pair.names), "")
    if name:
        choice, strength = _choice(row[name], pair, row, f"/{name}")
    else:
        choice, strength = _by_scores(row, pair), 1
    annotator = next((row[each] for each in _ANNOTATORS if isinstance(row.get(each), str) and row[each]), "")
    yield preference(places, choice, annotator[:254] or "answer-pairs", strength=strength)


def _choice(value: Any, pair: AnswerPair, row: dict[str, Any], pointer: str) -> tuple[Choice, int]:
    """With how strong the preference is."""
    if isinstance(value, int) and not isinstance(value, bool) and pair.between == " " and value in _AUTO_J:
        return _AUTO_J[value], 1
    if isinstance(value, int | str) and not isinstance(value, bool):
        text = str(value)[:_LONGEST]
        if ">" in text or "<" in text or "=" in text:
            return _by_order(text, pair, pointer)
        models = [row.get(pair.model(row, name)) for name in pair.names]
        if models[0] != models[1] and text in models:
            return ("a", "b")[models.index(text)], 1
        if (side := _side(text, pair)) is not None:
            return side, 1
        if (tie := _TIES.get(_plain(text))) is not None:
            return tie, 1
    raise InvalidRecord(
        f"the label names one of the answers ({pair.marks[0]!r}, {pair.marks[1]!r}) or is 'tie', not"
        f" {str(value)[:60]!r}; write it so, or leave the row out.",
        pointer=pointer,
    )


def _by_order(text: str, pair: AnswerPair, pointer: str) -> tuple[Choice, int]:
    """`A>B`, `A>>B` (much better), `B>A`, `A=B`."""
    for sign in (">>", "<<", ">", "<", "="):
        first, found, second = text.partition(sign)
        if not found:
            continue
        sides = _side(first, pair), _side(second, pair)
        if set(sides) == {"a", "b"}:
            if sign == "=":
                return "tie", 1
            better = sides[0] if sign[0] == ">" else sides[1]
            return better or "tie", len(sign)
        break
    raise InvalidRecord(
        f"an order is such as '{pair.marks[0]}>{pair.marks[1]}', not {text[:60]!r}.", pointer=pointer
    )


def _side(text: str, pair: AnswerPair) -> Choice | None:
    """The answer that a text names: by its column, or by what tells its column apart."""
    if text.strip() in pair.names:
        return "a" if text.strip() == pair.names[0] else "b"
    known = _plain(text)
    marks = [mark.lower() for mark in pair.marks]
    words = known.split()
    if len(words) > 1 and words[0] in _WORDS:
        known = " ".join(words[1:])
    if known in marks:
        return "a" if known == marks[0] else "b"
    return None


def _plain(text: str) -> str:
    return " ".join("".join(each if each.isalnum() else " " for each in text).lower().split())


def _by_scores(row: dict[str, Any], pair: AnswerPair) -> Choice:
    for names in _score_columns(pair):
        if all(name in row for name in names):
            first, second = (label_number(row, name) for name in names)
            return by_sign(second - first)
    raise InvalidRecord(
        f"the row does not say which answer is better; known are {', '.join(LABELS[:4])}, and a score of each."
    )


def _score_columns(pair: AnswerPair) -> Iterator[tuple[str, str]]:
    first, second = pair.marks
    for score in _SCORES:
        for between in ("_", " ", ""):
            yield f"{score}{between}{first}", f"{score}{between}{second}"
        yield f"{pair.names[0]}_{score}", f"{pair.names[1]}_{score}"


_READ = {name for pair in rows.PAIRS for names in _score_columns(pair) for name in names}
read = answer_reader(rows, _labels, [f"/{name}" for name in (*LABELS, *_ANNOTATORS, *sorted(_READ))])
