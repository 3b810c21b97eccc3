"""What one step's card shows. Long texts are cut here, so that a page never carries what nobody asked to see."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import zip_longest
from types import MappingProxyType
from typing import Any, TypeVar

from django.utils.safestring import SafeString

from apps.trajectories import rendering
from apps.trajectories.attachments import PREFIX, digest_of
from apps.trajectories.clicks import Mark
from apps.trajectories.pictures import CLIPS, RASTER
from apps.trajectories.rendering import Argument
from workers.schema import Part, Step, Trajectory

MOST = 4000  # characters of one text on a card
FOLDED = (6, 600)  # lines and characters of an observation beyond which it is folded
_SHOWN_SOURCE = 200  # characters of where something is said to be
Shown = TypeVar("Shown", "Text", Argument)
_SPEAKERS = {"system": "System", "user": "User", "agent": "Agent", "environment": "Environment"}


@dataclass(frozen=True, slots=True)
class Text:
    """A text as shown; hidden: how many characters of it are not."""

    text: str
    html: SafeString
    hidden: int = 0
    is_long: bool = False

    @property
    def first_line(self) -> str:
        return self.text.strip().partition("\n")[0][:160]


@dataclass(frozen=True, slots=True)
class Media:
    """digest: of the attachment, where it is one of ours. is_picture, is_clip: a browser may show it. note: else, in
    words. size: pixels, where marks are to be drawn on it: where the agent acted next."""

    kind: str
    digest: str | None
    is_picture: bool
    is_clip: bool
    note: str
    size: tuple[int, int] | None = None
    marks: tuple[Mark, ...] = ()


@dataclass(frozen=True, slots=True)
class Call:
    name: str
    id: str | None
    arguments: list[Argument]


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
        shown: list[Text | Argument] = [*self.texts, *([self.reasoning] if self.reasoning else [])]
        shown += [argument for call in self.calls for argument in call.arguments]
        shown += [text for result in self.results for text in result.texts]
        return sum(one.hidden for one in shown)

    def beside(self, other: "StepCard") -> "StepCard":
        """The card with those words marked of what the agent did and said that `other`, a version of it, lacks."""
        theirs = {(call.name, argument.name): argument for call in other.calls for argument in call.arguments}
        calls = [
            replace(
                call, arguments=[_marked(one, theirs.get((call.name, one.name))) for one in call.arguments]
            )
            for call in self.calls
        ]
        texts = [_marked(*pair) for pair in zip_longest(self.texts, other.texts[: len(self.texts)])]
        return replace(self, calls=calls, texts=texts if self.agent_step is not None else self.texts)


def card_of(
    step: Step,
    index: int,
    agent_step: int | None,
    *,
    full: bool = False,
    attached: Mapping[str, str] = MappingProxyType({}),
) -> StepCard:
    """attached: media types by digest of the attachments that there are; others the step names are missing."""
    most = None if full else MOST
    return StepCard(
        index=index,
        agent_step=agent_step,
        source=step.source,
        speaker=_SPEAKERS[step.source],
        texts=_texts(step.message, most, rendering.message_html),
        media=_media(step.message, attached),
        reasoning=_text(step.reasoning, most, rendering.message_html) if step.reasoning else None,
        calls=[
            Call(call.name, call.id, rendering.arguments_of(call.name, call.arguments, most))
            for call in step.tool_calls
        ],
        results=[
            Result(
                result.call_id,
                _texts(result.content, most, rendering.output_html),
                _media(result.content, attached),
            )
            for result in step.observation
        ],
        features=", ".join(f"{number:.6g}" for number in step.features or ()),
        reward=step.reward,
        replaced=step.extra.get("replaced_characters", 0),
        is_full=full,
    )


def with_marks(card: StepCard, marks: Sequence[Mark], digest: str, size: tuple[int, int]) -> StepCard:
    """The card with marks on the picture of that digest."""

    def marked(media: list[Media]) -> list[Media]:
        return [replace(one, size=size, marks=tuple(marks)) if one.digest == digest else one for one in media]

    results = [replace(result, media=marked(result.media)) for result in card.results]
    return replace(card, media=marked(card.media), results=results)


def cards_of(trajectory: Trajectory, stop: int) -> list[StepCard]:
    """The first cards of a trajectory that is not stored yet."""
    places = {index: place for place, index in enumerate(trajectory.agent_steps)}
    with rendering.one_page():
        return [card_of(step, index, places.get(index)) for index, step in enumerate(trajectory.steps[:stop])]


def _texts(parts: Iterable[Part], most: int | None, html: Callable[[str], SafeString]) -> list[Text]:
    return [_text(part.text, most, html) for part in parts if part.text]


def _text(text: str, most: int | None, html: Callable[[str], SafeString]) -> Text:
    lines, characters = FOLDED
    is_long = len(text) > characters or text.count("\n") >= lines
    shown = text if most is None else text[:most]
    return Text(shown, html(shown), hidden=len(text) - len(shown), is_long=is_long)


def _marked(one: Shown, other: Shown | None) -> Shown:
    if other is None or one.text == other.text:
        return one
    return replace(one, html=rendering.marked(one.text, other.text))


def _media(parts: Iterable[Part], attached: Mapping[str, str]) -> list[Media]:
    return [_medium(part, attached) for part in parts if part.type != "text"]


def _medium(part: Part, attached: Mapping[str, str]) -> Media:
    source, digest = part.source or "", digest_of(part.source)
    if digest is not None and (kind := attached.get(digest)) is not None:
        return Media(part.type, digest, kind in RASTER, kind in CLIPS, kind)
    if source.startswith(PREFIX):
        return Media(part.type, None, False, False, f"missing attachment {source[:_SHOWN_SOURCE]}")
    # Nothing is ever fetched from where a trajectory says: its address is shown as text.
    shown: Any = source if len(source) <= _SHOWN_SOURCE else f"{source[:_SHOWN_SOURCE]}…"
    return Media(part.type, None, False, False, shown or "without content")
