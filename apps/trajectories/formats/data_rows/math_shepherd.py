"""Math-Shepherd: {"input": question and steps with a tag behind each, "label": the same with + or - for the tag,
"task"}. The labels of the steps are feedback (`import_feedback --format math-shepherd`).
"""

from typing import Any

from apps.trajectories.formats.data_rows.row_trajectories import OUTCOME_READ, required_text, user_text
from apps.trajectories.formats.data_rows.solution_steps import stepwise_trajectory
from workers.errors import InvalidRecord
from workers.schema import Trajectory, clean
from workers.schema.decode import require_object
from workers.schema.patterns import TextPattern

SIGN = "an object with `input` and `label`, texts of which the first has the tag `ки` behind each step"
READ = (*OUTCOME_READ, "/input")
TAG = "ки"
_FIRST = TextPattern(r"(?:\A|\s)Step 1:")


def sniff(document: Any) -> bool:
    return (
        isinstance(document, dict)
        and all(isinstance(document.get(name), str) for name in ("input", "label"))
        and TAG in document["input"]
    )


def read(document: Any) -> Trajectory:
    row, _ = clean(require_object(document))
    question, steps = question_and_steps(row)
    return stepwise_trajectory(user_text(question), steps, row, known=("input",), pointer="/input")


def question_and_steps(row: dict[str, Any]) -> tuple[str, list[str]]:
    text = required_text(row, "input")
    first = _FIRST.search(text)
    if first is None:
        raise InvalidRecord("no `Step 1:` tells where the question ends.", pointer="/input")
    steps = [step.strip() for step in text[first.start() :].split(TAG)]
    return text[: first.start()].strip(), [step for step in steps if step]


def step_labels(row: dict[str, Any]) -> list[bool]:
    """Of each step whether it is good: what stands in the label where the input has the tag."""
    text, label = required_text(row, "input"), required_text(row, "label")
    found: list[bool] = []
    place = 0
    for piece in text.split(TAG)[:-1]:
        place += len(piece)
        mark = label[place : place + 1]
        if not label[:place].endswith(piece) or mark not in ("+", "-"):
            raise InvalidRecord(
                f"has no + or - for the tag of step {len(found) + 1}; it is the input with these for its tags.",
                pointer="/label",
            )
        found.append(mark == "+")
        place += 1
    return found
