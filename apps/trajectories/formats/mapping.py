"""Documents of any shape, read by a mapping: which of their fields is the task, the messages, the answer, the score.

A mapping names each field by a JSONPath (`json_paths`). In a file it is TOML:

    [fields]
    messages = "$.conversation"
    task = "$.meta.question_id"
    reward = "$.grade.value"
"""

import tomllib
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from msgspec.structs import replace

from apps.trajectories.field_coverage import PathPatterns
from apps.trajectories.formats.chat import openai, prompt_response
from apps.trajectories.formats.json_paths import find_value, parse_path, without_value
from workers.errors import InvalidRecord
from workers.schema import Task, Trajectory
from workers.schema.decode import finite, json_type_name

NAME = "mapping"
# What a document may be read as, in the order of the form.
FIELDS = {
    "messages": "Messages of the run, as any API writes them",
    "prompt": "What the agent was asked: text or messages",
    "response": "What the agent answered: text or messages",
    "chosen": "The preferred answer: a trajectory of its own",
    "rejected": "The other answer: a trajectory of its own",
    "system": "Instructions of the agent",
    "task": "Id of the task; trajectories of one task are compared",
    "instruction": "Description of the task, for annotators",
    "reference": "Reference answer of the task, for annotators",
    "id": "Id of the run",
    "agent": "Name of the agent or model",
    "reward": "Score of the outcome, a number",
    "success": "Whether the run succeeded",
}
# Names of keys that most often are the field, in the order of preference.
_USUAL = {
    "messages": (
        "messages",
        "conversation",
        "conversations",
        "dialogue",
        "dialog",
        "turns",
        "history",
        "trajectory",
    ),
    "prompt": ("prompt", "question", "query", "input"),
    "response": ("response", "completion", "answer", "output", "generation"),
    "chosen": ("chosen", "preferred", "winner"),
    "rejected": ("rejected", "dispreferred", "loser"),
    "system": ("system", "system_prompt"),
    "task": ("task_id", "question_id", "prompt_id", "problem_id", "instance_id"),
    "reference": ("reference", "ground_truth", "gold", "target"),
    "id": ("id", "run_id", "trace_id", "uuid"),
    "agent": ("agent", "model", "model_name", "generator"),
    "reward": ("reward", "score", "rating", "grade"),
    "success": ("success", "passed", "correct", "is_correct", "resolved"),
}
_PAIR = ("chosen", "rejected")
_TRUE, _FALSE = ("true", "yes", "1", "1.0", "success", "pass"), ("false", "no", "0", "0.0", "failure", "fail")


@dataclass(frozen=True, slots=True)
class FieldMapping:
    """paths: a JSONPath for each of FIELDS that is mapped."""

    paths: Mapping[str, str]

    def __post_init__(self) -> None:
        """Raises InvalidRecord with the field that is wrong."""
        for name, path in self.paths.items():
            if name not in FIELDS:
                raise InvalidRecord(
                    f"there is no field {name[:40]!r}; there are {', '.join(FIELDS)}.",
                    pointer=f"/fields/{name}",
                )
            if not isinstance(path, str):
                raise InvalidRecord(
                    f"expected a JSONPath, got {json_type_name(path)}.", pointer=f"/fields/{name}"
                )
            try:
                parse_path(path)
            except InvalidRecord as error:
                raise error.at(f"/fields/{name}") from None
        if not ({"messages", "response"} & self.paths.keys() or self.paths.keys() >= {*_PAIR}):
            raise InvalidRecord(
                "a mapping needs `messages`, or `response` (most often with `prompt`), or `chosen` and `rejected`.",
                pointer="/fields",
            )

    @classmethod
    def from_toml(cls, text: str) -> "FieldMapping":
        """Raises InvalidRecord."""
        try:
            document = tomllib.loads(text)
        except tomllib.TOMLDecodeError as error:
            raise InvalidRecord(f"the mapping is not valid TOML: {error}.") from None
        fields = document.get("fields")
        if not isinstance(fields, dict) or len(document) != 1:
            raise InvalidRecord(
                'a mapping is one table [fields], such as: [fields] then messages = "$.turns".'
            )
        return cls(fields)

    def read(self, document: Any) -> Trajectory:
        """A document, or one of the two that `split` makes of it. Raises InvalidRecord."""
        values = self._values(document)
        answer = next((name for name in _PAIR if name in values), None)
        if answer is not None:
            values["response"] = values.pop(answer)
        around = {key: values[key] for key in ("id", "agent", "system") if key in values}
        around = {
            key: str(value) if isinstance(value, int | float) else value for key, value in around.items()
        }
        if "messages" in values:
            trajectory = openai.read({"messages": values["messages"], **around})
        else:
            prompt = values.get("prompt", "")
            trajectory = prompt_response.read(
                {"prompt": prompt, "response": values.get("response"), **around}
            )
        return replace(
            trajectory,
            task=self._task(values, trajectory.task),
            reward=_number(values.get("reward")),
            success=_truth(values.get("success")),
        )

    @property
    def is_pair(self) -> bool:
        return self.paths.keys() >= {*_PAIR}

    def split(self, document: Any) -> Iterator[tuple[str, Any]]:
        """Of a pair two documents, in each of which only one answer is."""
        for name in _PAIR:
            other = _PAIR[name == _PAIR[0]]
            path = parse_path(self.paths[name])
            yield "".join(f"/{key}" for key in path), without_value(document, parse_path(self.paths[other]))

    def _values(self, document: Any) -> dict[str, Any]:
        found = {name: find_value(document, parse_path(path)) for name, path in self.paths.items()}
        values = {name: value for name, value in found.items() if value is not None}
        if not {"messages", "response", *_PAIR} & values.keys():
            wanted = [self.paths[name] for name in ("messages", "response", *_PAIR) if name in self.paths]
            raise InvalidRecord(f"has nothing at {' or '.join(wanted)}, where the mapping looks for the run.")
        return values

    def _task(self, values: dict[str, Any], read: Task) -> Task:
        identity, instruction = values.get("task"), values.get("instruction")
        if isinstance(identity, dict | list):
            raise InvalidRecord(f"the id of a task is text or a number, not {json_type_name(identity)}.")
        return replace(
            read,
            id=read.id if identity is None else str(identity),
            instruction=_text(instruction) or read.instruction,
            reference=_text(values.get("reference")) or read.reference,
        )


# What `field_coverage` is told of a mapping: its outcome is read into another form.
def patterns(mapping: FieldMapping) -> PathPatterns:
    read = ("reward", "success", "task", "id")
    paths = (parse_path(mapping.paths[name]) for name in read if name in mapping.paths)
    return PathPatterns("".join(f"/{'*' if isinstance(key, int) else key}" for key in path) for path in paths)


def guess_fields(paths: Iterable[str]) -> dict[str, str]:
    """The paths that are most likely the fields, by the names of their last keys; of a run, only one way to give it."""
    by_key: dict[str, str] = {}
    for path in paths:
        keys = parse_path(path)
        if keys and isinstance(keys[-1], str):
            by_key.setdefault(keys[-1].lower(), path)
    found = {
        field: by_key[name] for field, names in _USUAL.items() for name in reversed(names) if name in by_key
    }
    if "messages" in found or found.keys() >= {*_PAIR}:
        unused = ("prompt", "response") if "messages" in found else ("response",)
        found = {field: path for field, path in found.items() if field not in unused}
    return found


def _text(value: Any) -> str | None:
    if value is None or isinstance(value, str):
        return value
    if isinstance(value, bool | int | float):
        return str(value)
    raise InvalidRecord(f"expected text, got {json_type_name(value)}.")


def _number(value: Any) -> float | None:
    """A number, also one as text."""
    if isinstance(value, bool):
        return float(value)
    if isinstance(value, str):
        try:
            return finite(float(value))
        except ValueError:
            raise InvalidRecord(
                f"{value[:40]!r} is no number, which the mapping reads as the reward."
            ) from None
    return finite(value)


def _truth(value: Any) -> bool | None:
    if value is None or isinstance(value, bool):
        return value
    text = str(value).strip().lower()
    if text in _TRUE or text in _FALSE:
        return text in _TRUE
    raise InvalidRecord(f"{str(value)[:40]!r} is neither true nor false, which the mapping reads as success.")
