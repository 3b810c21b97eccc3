"""Two answers to one prompt under names that many data sets of judges have: {"prompt" | "question" | "input" | ...,
"response_A" and "response_B", "response 1" and "response 2", "output_1" and "output_2" or the like, "label"}: two
trajectories, with the agents that `model_a` and `model_b` name. Which is better (`label`, `winner`, scores) is feedback
(`import_feedback --format answer-pairs`).
"""

from collections.abc import Iterator
from typing import Any, NamedTuple

from apps.trajectories.formats.data_rows.row_trajectories import (
    OUTCOME_READ,
    answer_messages,
    required_text,
    row_trajectory,
    user_text,
)
from workers.errors import InvalidRecord
from workers.schema import Trajectory, clean
from workers.schema.decode import require_object

SIGN = "an object with `prompt`, `question` or `input`, and two answers such as `response_A` and `response_B`"
_PROMPTS = ("prompt", "question", "input", "instruction", "query", "problem", "user_prompt")
_OF_OTHERS = (
    "better_response_id",
    "preference_strength",
    "overall_preference",
    "answer_0_score",
    "messages",
)
_WITH_INSTRUCTIONS = (("output_1", "output_2"), ("response1", "response2"))  # of AlpacaEval and PandaLM
_NAMES = ("response", "output", "answer", "completion", "generation", "resp")
_MARKS = (("A", "B"), ("a", "b"), ("1", "2"), ("0", "1"))
_MODELS = ("model", "generator", "model_name", "policy")


class AnswerPair(NamedTuple):
    """names: of the two columns. marks: what tells them apart in their names. between: name and mark."""

    names: tuple[str, str]
    marks: tuple[str, str]
    between: str

    def model(self, row: dict[str, Any], name: str) -> str:
        """The column that names who gave an answer; empty for none. name: of the column of the answer."""
        mark = self.marks[self.names.index(name)]
        marks = dict.fromkeys((mark, mark.lower(), mark.upper()))
        columns = [
            f"{model}{between}{mark}" for model in _MODELS for between in ("_", " ", "") for mark in marks
        ]
        return next(
            (each for each in (*columns, f"{name}_model") if isinstance(row.get(each), str) and row[each]), ""
        )


PAIRS = tuple(
    AnswerPair((f"{name}{between}{first}", f"{name}{between}{second}"), (first, second), between)
    for name in _NAMES
    for between in ("_", " ", "")
    for first, second in _MARKS
)
_COLUMNS = {name: pair for pair in PAIRS for name in pair.names}
READ = (*OUTCOME_READ, *(f"/{name}" for name in _COLUMNS))


def sniff(document: Any) -> bool:
    if not isinstance(document, dict) or any(name in document for name in _OF_OTHERS):
        return False
    pair = answer_pair(document)
    if "instruction" in document and pair is not None and pair.names in _WITH_INSTRUCTIONS:
        return False
    return bool(_prompt(document)) and (pair is not None or _is_half(document))


def _prompt(row: dict[str, Any]) -> str:
    return next((name for name in _PROMPTS if isinstance(row.get(name), str)), "")


def answer_pair(row: dict[str, Any]) -> AnswerPair | None:
    """The columns of the two answers of a row; None where it has not two."""
    return next((pair for pair in PAIRS if all(isinstance(row.get(name), str) for name in pair.names)), None)


def _is_half(row: dict[str, Any]) -> bool:
    """Whether it is one of the two documents of a row."""
    return row.get("side") in _COLUMNS and isinstance(row.get(str(row["side"])), str)


def split(document: Any) -> Iterator[tuple[str, Any]]:
    row = require_object(document)
    pair = answer_pair(row)
    if pair is None:
        yield "", document
        return
    models = {name: pair.model(row, name) for name in pair.names}
    common = {key: value for key, value in row.items() if key not in (*pair.names, *models.values())}
    for name in pair.names:
        model = {models[name]: row[models[name]]} if models[name] else {}
        yield f"/{name}", common | model | {name: row[name], "side": name}


def read(document: Any) -> Trajectory:
    row, _ = clean(require_object(document))
    side = row.get("side")
    name = (
        side
        if isinstance(side, str) and side in _COLUMNS
        else next((key for key in _COLUMNS if key in row), "")
    )
    if name not in row:
        raise InvalidRecord("the row has no answer.")
    prompt = _prompt(row)
    if not prompt:
        raise InvalidRecord("the row has no prompt.")
    asked = user_text(required_text(row, prompt))
    model = _COLUMNS[name].model(row, name)
    return row_trajectory(
        asked,
        answer_messages(row, name),
        row,
        known=(prompt, name, model),
        pointer=f"/{name}",
        agent=row[model] if model else "",
    )
