"""What one step's card shows. Long texts are cut here, so that a page never carries what nobody asked to see."""

import json
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

from apps.trajectories.attachments import PREFIX, RASTER
from workers.schema import Part, Step, ToolCall, Trajectory

MOST = 4000  # characters of one text on a card
FOLDED = (6, 600)  # lines and characters of an observation beyond which it is folded
_SPEAKERS = {"system": "System", "user": "User", "agent": "Agent", "environment": "Environment"}


@dataclass(frozen=True, slots=True)
class Text:
    """A text as shown; hidden: how many characters of it are not."""

    text: str
    hidden: int = 0
    is_long: bool = False

    @property
    def first_line(self) -> str:
        return self.text.strip().partition("\n")[0][:160]


@dataclass(frozen=True, slots=True)
class Media:
    """digest: of the attachment, where it is one of ours. is_picture: a browser may show it. note: else, in words."""

    kind: str
    digest: str | None
    is_picture: bool
    note: str


@dataclass(frozen=True, slots=True)
class Call:
    name: str
    id: str | None
    arguments: Text


@dataclass(frozen=True, slots=True)
class Result:
    call_id: str | None
    texts: list[Text] = field(default_factory=list)
    media: list[Media] = field(default_factory=list)


@dataclass(frozen=True, slots=True, kw_only=True)
class StepCard:
    """index: among all steps; agent_step: among the agent's, else None. is_full: nothing is cut."""

    index: int
    agent_step: int | None
    source: str
    speaker: str
    texts: list[Text]
    media: list[Media]
    reasoning: Text | None
    calls: list[Call]
    results: list[Result]
    features: str
    reward: float | None
    replaced: int
    is_full: bool

    @property
    def hidden(self) -> int:
        texts = [
            *self.texts,
            *(call.arguments for call in self.calls),
            *([self.reasoning] if self.reasoning else []),
        ]
        texts += [text for result in self.results for text in result.texts]
        return sum(text.hidden for text in texts)


def card_of(step: Step, index: int, agent_step: int | None, *, full: bool = False) -> StepCard:
    most = None if full else MOST
    return StepCard(
        index=index,
        agent_step=agent_step,
        source=step.source,
        speaker=_SPEAKERS[step.source],
        texts=_texts(step.message, most),
        media=_media(step.message),
        reasoning=_text(step.reasoning, most) if step.reasoning else None,
        calls=[Call(call.name, call.id, _text(_pretty(call), most)) for call in step.tool_calls],
        results=[
            Result(result.call_id, _texts(result.content, most), _media(result.content))
            for result in step.observation
        ],
        features=", ".join(f"{number:.6g}" for number in step.features or ()),
        reward=step.reward,
        replaced=step.extra.get("replaced_characters", 0),
        is_full=full,
    )


def cards_of(trajectory: Trajectory, stop: int) -> list[StepCard]:
    """The first cards of a trajectory that is not stored yet."""
    places = {index: place for place, index in enumerate(trajectory.agent_steps)}
    return [card_of(step, index, places.get(index)) for index, step in enumerate(trajectory.steps[:stop])]


def _texts(parts: Iterable[Part], most: int | None) -> list[Text]:
    return [_text(part.text, most) for part in parts if part.text]


def _text(text: str, most: int | None) -> Text:
    lines, characters = FOLDED
    is_long = len(text) > characters or text.count("\n") >= lines
    if most is None or len(text) <= most:
        return Text(text, is_long=is_long)
    return Text(text[:most], hidden=len(text) - most, is_long=is_long)


def _pretty(call: ToolCall) -> str:
    if isinstance(call.arguments, str):
        return call.arguments
    return json.dumps(call.arguments, ensure_ascii=False, indent=2) if call.arguments else ""


def _media(parts: Iterable[Part]) -> list[Media]:
    return [_medium(part) for part in parts if part.type != "text"]


def _medium(part: Part) -> Media:
    source = part.source or ""
    if source.startswith(PREFIX):
        return Media(
            part.type, source.removeprefix(PREFIX), part.media_type in RASTER, part.media_type or part.type
        )
    # Nothing is ever fetched from where a trajectory says: its address is shown as text.
    shown: Any = source if len(source) <= 200 else f"{source[:200]}…"
    return Media(part.type, None, False, shown or "without content")
