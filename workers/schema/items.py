"""ITEM: the input of the reward API, imports and clients: one thing to be scored."""

import dataclasses
from collections.abc import Collection
from dataclasses import dataclass, field
from typing import Any

import msgspec

from workers.errors import InvalidRecord
from workers.schema.atif import from_atif
from workers.schema.atif_writer import to_atif
from workers.schema.conditions import CONDITIONS, condition_text, parse_conditions, with_conditions
from workers.schema.decode import clean, convert, finite, optional_str, require_object
from workers.schema.messages import build_trajectory, from_messages, from_prompt_response
from workers.schema.records import Step, Task, Trajectory

FORMS = ("messages", "trajectory", "prompt", "text", "input_ids", "features", "trajectory_id")
OPTIONS = ("reference", "group", "session", "logprob", "ref_logprob", "metadata", *CONDITIONS[1:])


@dataclass(frozen=True, slots=True)
class Text:
    """One agent step with no template added."""

    text: str


@dataclass(frozen=True, slots=True)
class TokenIds:
    """Scored as they are."""

    ids: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Features:
    """A numeric trajectory, [agent steps][features]."""

    rows: tuple[tuple[float, ...], ...]


@dataclass(frozen=True, slots=True)
class TrajectoryId:
    """A stored trajectory; the one form that reads the database."""

    id: str


Content = Trajectory | Text | TokenIds | Features | TrajectoryId


@dataclass(frozen=True, slots=True)
class RenderedText:
    """A prompt and a response as they were sent: text, which chat templates may have rendered, or chat messages.

    prompt: None where `response` is all of the text. flags: what its reading flagged.
    """

    prompt: Any
    response: Any
    flags: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class ScoreInput:
    """group: items of the same prompt. session: this trajectory grows. logprobs: sums over the response, in nats.

    conditions: by name, what a conditioned model reads next to the content, without the reference answer. flags: what
    reading the item left out or took for granted. rendered: the text it was read from, if any.
    """

    content: Content
    reference: str | None = None
    group: str | None = None
    session: str | None = None
    logprob: float | None = None
    ref_logprob: float | None = None
    metadata: dict[str, Any] = field(default_factory=dict)
    conditions: dict[str, str] = field(default_factory=dict)
    flags: tuple[str, ...] = ()
    rendered: RenderedText | None = None

    @property
    def step_count(self) -> int:
        """Agent steps, rows of features, or 1."""
        if isinstance(self.content, Trajectory):
            return len(self.content.agent_steps)
        return len(self.content.rows) if isinstance(self.content, Features) else 1

    def with_content(self, content: Content) -> "ScoreInput":
        return dataclasses.replace(self, content=content)


def parse_item(
    value: Any, *, task: Task | None = None, pointer: str = "", extra_keys: tuple[str, ...] = ()
) -> ScoreInput:
    """The Item of a decoded JSON object. task: which task its trajectory belongs to (its own, or none, without).

    extra_keys: further keys the caller reads itself. Raises InvalidRecord with the JSON pointer of what is wrong.
    """
    value, _ = clean(require_object(value, pointer=pointer))
    forms = [form for form in FORMS if form in value]
    if len(forms) != 1:
        has = "it has " + " and ".join(forms) if forms else "it has none"
        raise InvalidRecord(f"an item has exactly one of {', '.join(FORMS)}; {has}.", pointer=pointer)
    allowed = {*FORMS, *OPTIONS, "response", *extra_keys}
    unknown = next((key for key in value if key not in allowed), None)
    if unknown is not None:
        raise InvalidRecord(
            f"unknown key {unknown!r}; an item may have {', '.join([*FORMS, *OPTIONS])}.",
            pointer=f"{pointer}/{unknown}",
        )
    group, session = (optional_str(value.get(name), pointer=f"{pointer}/{name}") for name in OPTIONS[1:3])
    return ScoreInput(
        content=_content(forms[0], value, task, pointer),
        reference=_reference_text(value.get("reference")),
        group=group,
        session=session,
        logprob=finite(value.get("logprob"), pointer=f"{pointer}/logprob"),
        ref_logprob=finite(value.get("ref_logprob"), pointer=f"{pointer}/ref_logprob"),
        metadata=require_object(value.get("metadata") or {}, pointer=f"{pointer}/metadata"),
        conditions=parse_conditions(value, pointer=pointer),
    )


def with_item_conditions(item: ScoreInput, conditioned: Collection[str]) -> ScoreInput:
    """The item with the conditions of these in its trajectory, its own before those that are stored. Numbers with a
    goal become a trajectory, which can have one; other content is as it was."""
    if not conditioned:
        return item
    given = item.conditions | ({} if item.reference is None else {"reference": item.reference})
    content = item.content
    if isinstance(content, Features) and "goal" in conditioned and "goal" in given:
        steps = tuple(Step(source="agent", features=row) for row in content.rows)
        content = Trajectory(steps=steps, task=Task(id=""))
    if not isinstance(content, Trajectory):
        return item
    return item.with_content(with_conditions(content, conditioned, given))


def _reference_text(value: Any) -> str | None:
    """A text as it is, anything else as JSON."""
    return None if value is None else condition_text(value)


def _content(form: str, value: dict[str, Any], task: Task | None, pointer: str) -> Content:
    at, raw = f"{pointer}/{form}", value[form]
    if form == "messages":
        return build_trajectory(from_messages(raw, pointer=at), task or Task(id=""), pointer=at)
    if form == "trajectory":
        trajectory = from_atif(raw, pointer=at)
        return trajectory if task is None else msgspec.structs.replace(trajectory, task=task)
    if form == "prompt":
        if "response" not in value:
            raise InvalidRecord("a prompt needs a response.", pointer=f"{pointer}/response")
        steps = from_prompt_response(raw, value["response"], pointer=pointer)
        return build_trajectory(steps, task or Task(id=""), pointer=pointer)
    if form == "input_ids":
        ids = convert(raw, tuple[int, ...], pointer=at)
        return TokenIds(_not_empty(ids, at))
    if form == "features":
        rows = convert(raw, tuple[tuple[float, ...], ...], pointer=at)
        return Features(_not_empty(_rectangular(rows, at), at))
    text = optional_str(raw, pointer=at)
    if text is None:
        raise InvalidRecord("expected a string, got null.", pointer=at)
    return Text(text) if form == "text" else TrajectoryId(text)


def _not_empty(values: Any, at: str) -> Any:
    if not values:
        raise InvalidRecord("is empty, so there is nothing to score.", pointer=at)
    return values


def _rectangular(rows: tuple[tuple[float, ...], ...], at: str) -> tuple[tuple[float, ...], ...]:
    for index, row in enumerate(rows):
        if len(row) != len(rows[0]):
            raise InvalidRecord(
                f"has {len(row)} numbers where the first row has {len(rows[0])}.", pointer=f"{at}/{index}"
            )
        for column, number in enumerate(row):
            finite(number, pointer=f"{at}/{index}/{column}")
    return rows


def item_json(item: ScoreInput) -> dict[str, Any]:
    """The item as JSON that `parse_item` reads again. A trajectory goes as ATIF, whichever form it came in."""
    content = item.content
    if isinstance(content, Trajectory):
        form: dict[str, Any] = {"trajectory": to_atif(content)}
    elif isinstance(content, Text):
        form = {"text": content.text}
    elif isinstance(content, TokenIds):
        form = {"input_ids": list(content.ids)}
    elif isinstance(content, Features):
        form = {"features": [list(row) for row in content.rows]}
    else:
        form = {"trajectory_id": content.id}
    options = {name: getattr(item, name) for name in OPTIONS if name not in CONDITIONS[1:]} | item.conditions
    return form | {name: value for name, value in options.items() if value not in (None, {})}
