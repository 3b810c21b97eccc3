"""A question about trajectories in a folder. Each is read on its own first; then the labels are sorted into categories.

config.json             `QuestionConfig`
trajectories.jsonl.zst  work "answer": the trajectories, each with its id
labels.json             work "group": {label: how many trajectories have it}
answers.jsonl           cached answers of the language model (workers.llm.client)
found.jsonl             work "answer": {"trajectory", "label", "explanation", "steps"} or {"trajectory", "problem"}
result.json             {"usage", "prompts"}, and of work "group" {"categories": [{"name", "definition", "labels"}]}

A label for each trajectory, then categories of labels, is how TnT-LLM (https://arxiv.org/abs/2403.12173) makes a
taxonomy of a corpus; citations are checked to be steps of the trajectory.
"""

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict
from functools import partial
from pathlib import Path
from typing import Any, Literal

import msgspec

from workers.errors import RewardError
from workers.json_files import write_json
from workers.llm import LLMServer
from workers.llm.client import AnswersFile, LLMClient, NoAnswer
from workers.prompts.templates import prompt, quoted
from workers.prompts.trajectory_text import shown
from workers.schema import Trajectory, read_trajectories

MAX_LABEL = 80  # characters
MAX_CITATIONS = 5
_LABELS_PER_CALL = 150
OTHER = "Other"


class QuestionConfig(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    server: LLMServer
    work: Literal["answer", "group"]
    question: str
    max_categories: int = 8


class TrajectoryAnswer(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """steps: indices of the trajectory's steps that show it. label: None where the question does not apply."""

    explanation: str
    steps: list[int]
    label: str | None


class Category(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    name: str
    definition: str
    labels: list[int]


class Categories(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    categories: list[Category]


def answer_question(folder: Path) -> dict[str, Any]:
    """Everything between config.json and result.json; the result. Raises RewardError where no call can succeed: a
    refused key, a spent budget."""
    config = msgspec.json.decode((folder / "config.json").read_bytes(), type=QuestionConfig)
    model = LLMClient(config.server, AnswersFile(folder / "answers.jsonl"))
    result: dict[str, Any] = {}
    if config.work == "answer":
        _answer_each(folder, model, config.question)
    else:
        labels = json.loads((folder / "labels.json").read_text(encoding="utf-8"))
        result["categories"] = group_labels(model, config.question, labels, most=config.max_categories)
    result |= {"usage": asdict(model.usage), "prompts": sorted(model.asked)}
    write_json(folder / "result.json", result)
    return result


def _answer_each(folder: Path, model: LLMClient, question: str) -> None:
    trajectories = read_trajectories(folder / "trajectories.jsonl.zst")
    with (folder / "found.jsonl").open("a", encoding="utf-8") as out:
        for trajectory, answer in model.each(trajectories, partial(ask_about, model, question)):
            line = (
                {"problem": answer.message} if isinstance(answer, NoAnswer) else msgspec.to_builtins(answer)
            )
            out.write(json.dumps({"trajectory": trajectory.id} | line) + "\n")
            out.flush()


def ask_about(model: LLMClient, question: str, trajectory: Trajectory) -> TrajectoryAnswer:
    """Raises NoAnswer, RewardError."""
    asked = prompt("ask", question=quoted(question), run=shown(trajectory))
    check = partial(_check_answer, len(trajectory.steps))
    found = model.ask(asked, TrajectoryAnswer, check, about={"trajectory": str(trajectory.id)})
    label = None if found.label is None else " ".join(found.label.split()).rstrip(".")
    return TrajectoryAnswer(
        explanation=found.explanation.strip(), steps=list(dict.fromkeys(found.steps)), label=label
    )


def _check_answer(step_count: int, answer: TrajectoryAnswer) -> None:
    for place, step in enumerate(answer.steps):
        if not 0 <= step < step_count:
            raise RewardError(
                f"There is no step {step}; the run has steps 0 to {step_count - 1}.",
                pointer=f"/steps/{place}",
            )
    if len(answer.steps) > MAX_CITATIONS:
        raise RewardError(
            f"{len(answer.steps)} steps are given; give at most {MAX_CITATIONS}.", pointer="/steps"
        )
    if not answer.explanation.strip():
        raise RewardError("The explanation is empty.", pointer="/explanation")
    if answer.label is None:
        return
    if not answer.label.strip() or len(answer.label) > MAX_LABEL:
        raise RewardError(
            f"The label has {len(answer.label)} characters; give 1 to {MAX_LABEL}, or null.", pointer="/label"
        )
    if not answer.steps:
        raise RewardError("An answer with a label needs at least one step that shows it.", pointer="/steps")


def group_labels(
    model: LLMClient, question: str, labels: Mapping[str, int], *, most: int
) -> list[dict[str, Any]]:
    """Categories {name, definition, labels}, each label in one of them; the frequent labels shape them.

    labels: how many trajectories have each. What the model leaves out is in the category "Other". Raises RewardError,
    where the model gives no usable answer too.
    """
    ordered = sorted(labels, key=lambda label: (-labels[label], label))
    if len(ordered) < 2:
        return [{"name": label, "definition": "", "labels": [label]} for label in ordered]
    found: dict[str, dict[str, Any]] = {}
    for start in range(0, len(ordered), _LABELS_PER_CALL):
        batch = ordered[start : start + _LABELS_PER_CALL]
        for category in _group_batch(model, question, batch, found, most):
            known = found.setdefault(
                _key(category.name), {"name": category.name, "definition": category.definition, "labels": []}
            )
            known["labels"] += [batch[number] for number in category.labels]
    placed = {label for category in found.values() for label in category["labels"]}
    if left := [label for label in ordered if label not in placed]:
        other = found.setdefault(
            _key(OTHER), {"name": OTHER, "definition": "No other category fits.", "labels": []}
        )
        other["labels"] += left
    return [category for category in found.values() if category["labels"]]


def _group_batch(
    model: LLMClient, question: str, batch: Sequence[str], found: Mapping[str, Mapping[str, Any]], most: int
) -> Iterator[Category]:
    known = [{"name": category["name"], "definition": category["definition"]} for category in found.values()]
    asked = prompt(
        "group",
        question=quoted(question),
        count=str(most),
        known=quoted(known),
        labels="\n".join(quoted({"answer": number, "text": label}) for number, label in enumerate(batch)),
    )

    def check(answer: Categories) -> None:
        names = {_key(category.name) for category in answer.categories} | set(found)
        if len(names) > most:
            raise RewardError(
                f"There are {len(names)} categories; give at most {most}.", pointer="/categories"
            )
        placed = set[int]()
        for place, category in enumerate(answer.categories):
            if not category.name.strip() or len(category.name) > MAX_LABEL:
                raise RewardError(
                    f"A name has 1 to {MAX_LABEL} characters.", pointer=f"/categories/{place}/name"
                )
            for number in category.labels:
                if not 0 <= number < len(batch) or number in placed:
                    raise RewardError(
                        f"Answer {number} does not exist, or is in two categories.",
                        pointer=f"/categories/{place}/labels",
                    )
                placed.add(number)

    try:
        answer = model.ask(asked, Categories, check)
    except NoAnswer as error:
        raise RewardError(f"The answers could not be sorted into categories: {error.message}") from error
    yield from answer.categories


def _key(name: str) -> str:
    return " ".join(name.split()).casefold()
