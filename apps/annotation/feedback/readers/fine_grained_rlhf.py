"""`fine-grained-rlhf` (QA feedback): a question with passages, four answers, six comparisons, error spans.

`preference` is in the order (1,2)(1,3)(1,4)(2,3)(2,4)(3,4): 1 the first, 2 the second, 0 a tie. The passages are part
of the prompt, since whether an answer is right can only be seen from them. The spans, on answer 1, become comments
anchored to it.
"""

import hashlib
from collections.abc import Iterator
from itertools import combinations
from typing import Any, BinaryIO

from apps.annotation.feedback.incoming import Found, Incoming
from apps.annotation.feedback.readers.json_lines import read_json_array
from apps.annotation.feedback.readers.row_coverage import RowFields
from apps.annotation.feedback_types.comment import CommentValue
from apps.annotation.feedback_types.pairwise import PreferenceValue
from apps.trajectories.field_coverage import PathPatterns
from workers.errors import InvalidRecord
from workers.schema import Anchor, Choice, Task, Trajectory, from_prompt_response
from workers.schema.decode import convert, optional_str, require_list, require_object
from workers.schema.messages import build_trajectory

_FIELDS = RowFields(
    PathPatterns(
        [
            *(f"/{name}" for name in ("question", "passages", "gold", "preference")),
            *(f"/prediction {number}" for number in range(1, 5)),
            *(f"/feedback/errors/*/{name}" for name in ("start", "end", "error type", "explanation")),
        ]
    )
)
ORDER = tuple(combinations(range(4), 2))
_CHOICE: dict[int, Choice] = {0: "tie", 1: "a", 2: "b"}
_ANNOTATOR = "fine-grained-rlhf"


def read(stream: BinaryIO) -> Iterator[tuple[int, Found]]:
    return read_json_array(stream, parse, _FIELDS)


def parse(record: dict[str, Any]) -> Iterator[Incoming]:
    question = record.get("question")
    if not isinstance(question, str):
        raise InvalidRecord("the question is missing.", pointer="/question")
    prompt = prompt_of(question, convert(record.get("passages", []), list[list[str]], pointer="/passages"))
    task = Task(
        id=f"fgqa-{hashlib.sha256(prompt.encode()).hexdigest()[:16]}",
        instruction=question,
        reference=optional_str(record.get("gold"), pointer="/gold"),
    )
    answers = [_answer(record, number, prompt, task) for number in range(1, 5)]
    preference = convert(record.get("preference"), list[int], pointer="/preference")
    if len(preference) != len(ORDER) or not set(preference) <= set(_CHOICE):
        raise InvalidRecord("expected six comparisons, each 0, 1 or 2.", pointer="/preference")
    for (first, second), said in zip(ORDER, preference, strict=True):
        yield Incoming(
            kind="pairwise", task=task, places=(answers[first], answers[second]), annotator=_ANNOTATOR,
            value=PreferenceValue(choice=_CHOICE[said]),
        )  # fmt: skip
    feedback = require_object(record.get("feedback") or {}, pointer="/feedback")
    for index, error in enumerate(require_list(feedback.get("errors") or [], pointer="/feedback/errors")):
        value = _span(error, answers[0], f"/feedback/errors/{index}")
        yield Incoming(kind="comment", task=task, places=(answers[0],), annotator=_ANNOTATOR, value=value)


def prompt_of(question: str, passages: list[list[str]]) -> str:
    texts = ["\n".join([passage[0], " ".join(passage[1:])]) for passage in passages if passage]
    return "\n\n".join([f"Question: {question}", "Passages:", *texts])


def _answer(record: dict[str, Any], number: int, prompt: str, task: Task) -> Trajectory:
    text = record.get(f"prediction {number}")
    if not isinstance(text, str):
        raise InvalidRecord(f"prediction {number} is missing.", pointer=f"/prediction {number}")
    return build_trajectory(from_prompt_response(prompt, text), task)


def _span(error: Any, answer: Trajectory, pointer: str) -> CommentValue:
    error = require_object(error, pointer=pointer)
    start, end = error.get("start"), error.get("end")
    text = answer.steps[1].text
    if not (isinstance(start, int) and isinstance(end, int) and 0 <= start < end <= len(text)):
        raise InvalidRecord(
            f"the span {start} to {end} is not within the answer of {len(text)} characters.", pointer=pointer
        )
    explanation = optional_str(error.get("explanation"), pointer=f"{pointer}/explanation")
    said = ": ".join(part for part in (str(error.get("error type", "Error")), explanation) if part)
    return CommentValue(
        text=said, sign=-1, anchor=Anchor(steps=(1, 1), quote=text[start:end], chars=(start, end))
    )
