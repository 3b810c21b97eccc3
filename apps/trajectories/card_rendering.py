"""The card of one step. Long texts are truncated here, so that pages stay small."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import zip_longest
from types import MappingProxyType
from typing import Any, TypeVar

from django.utils.safestring import SafeString

from apps.trajectories import rendering
from apps.trajectories.attachments import PREFIX, parse_digest
from apps.trajectories.clicks import ClickMark
from apps.trajectories.pictures import IMAGE_TYPES, VIDEO_TYPES
from apps.trajectories.rendering import Argument
from apps.trajectories.rendering.truncation import shown_length
from apps.trajectories.step_usage import StepUsage, stated_usage
from workers.schema import Part, Step, Trajectory

MAX_TEXT_LENGTH = 4000  # characters of one text on a card
FOLD_THRESHOLD = (6, 600)  # lines and characters of an observation beyond which it is folded
_SHOWN_SOURCE = 200  # characters of a media source
Shown = TypeVar("Shown", "CardText", Argument)
_SOURCE_LABELS = {"system": "System", "user": "User", "agent": "Agent", "environment": "Environment"}


@dataclass(frozen=True, slots=True)
class CardText:
    """A text as shown; hidden: the number of characters not shown."""

    text: str
    html: SafeString
    hidden: int = 0
    is_long: bool = False

    @property
    def first_line(self) -> str:
        return self.text.strip().partition("\n")[0][:160]


@dataclass(frozen=True, slots=True)
class CardMedia:
    """digest: of the attachment, where it is one of ours. is_picture, is_clip: a browser may show it. note: else, in
    words. size: pixels, where marks are to be drawn on it: where the agent acted next."""

    kind: str
    digest: str | None
    is_picture: bool
    is_clip: bool
    note: str
    size: tuple[int, int] | None = None
    marks: tuple[ClickMark, ...] = ()


@dataclass(frozen=True, slots=True)
class CallCard:
    name: str
    id: str | None
    arguments: list[Argument]


@dataclass(frozen=True, slots=True)
class ResultCard:
    call_id: str | None
    texts: list[CardText] = field(default_factory=list)
    media: list[CardMedia] = field(default_factory=list)


@dataclass(frozen=True, slots=True, kw_only=True)
class StepCard:
    """index: among all steps; agent_step: among the agent's, else None. source_label: what kind of speaker it is.
    speaker: its name, where the log gives one. is_full: nothing is truncated. usage: what the step states of it."""

    index: int
    agent_step: int | None
    source: str
    source_label: str
    speaker: str | None
    texts: list[CardText]
    media: list[CardMedia]
    reasoning: CardText | None
    calls: list[CallCard]
    results: list[ResultCard]
    features: str
    reward: float | None
    replaced: int
    is_full: bool
    usage: StepUsage

    @property
    def hidden(self) -> int:
        shown: list[CardText | Argument] = [*self.texts, *([self.reasoning] if self.reasoning else [])]
        shown += [argument for call in self.calls for argument in call.arguments]
        shown += [text for result in self.results for text in result.texts]
        return sum(text.hidden for text in shown)

    def with_differences(self, other: "StepCard") -> "StepCard":
        """The card with the words of the agent's actions and messages marked that `other`, a version of it, lacks."""
        theirs = {(call.name, argument.name): argument for call in other.calls for argument in call.arguments}
        calls = [
            replace(
                call,
                arguments=[
                    _marked(argument, theirs.get((call.name, argument.name))) for argument in call.arguments
                ],
            )
            for call in self.calls
        ]
        texts = [_marked(*pair) for pair in zip_longest(self.texts, other.texts[: len(self.texts)])]
        return replace(self, calls=calls, texts=texts if self.agent_step is not None else self.texts)


def render_step_card(
    step: Step,
    index: int,
    agent_step: int | None,
    *,
    full: bool = False,
    attached: Mapping[str, str] = MappingProxyType({}),
) -> StepCard:
    """attached: media types of existing attachments by digest; other digests of the step are missing."""
    most = None if full else MAX_TEXT_LENGTH
    return StepCard(
        index=index,
        agent_step=agent_step,
        source=step.source,
        source_label=_SOURCE_LABELS[step.source],
        speaker=step.speaker,
        texts=_texts(step.message, most, rendering.message_html),
        media=_media(step.message, attached),
        reasoning=_text(step.reasoning, most, rendering.message_html) if step.reasoning else None,
        calls=[
            CallCard(call.name, call.id, rendering.arguments_of(call.name, call.arguments, most))
            for call in step.tool_calls
        ],
        results=[
            ResultCard(
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
        usage=stated_usage(step.metrics),
    )


def with_marks(card: StepCard, marks: Sequence[ClickMark], digest: str, size: tuple[int, int]) -> StepCard:
    """The card with marks on the image of that digest."""

    def marked(media: list[CardMedia]) -> list[CardMedia]:
        return [
            replace(medium, size=size, marks=tuple(marks)) if medium.digest == digest else medium
            for medium in media
        ]

    results = [replace(result, media=marked(result.media)) for result in card.results]
    return replace(card, media=marked(card.media), results=results)


def render_step_cards(trajectory: Trajectory, stop: int) -> list[StepCard]:
    """Cards of the first steps of a trajectory that is not stored yet."""
    places = {index: place for place, index in enumerate(trajectory.agent_steps)}
    with rendering.one_page():
        return [
            render_step_card(step, index, places.get(index))
            for index, step in enumerate(trajectory.steps[:stop])
        ]


def _texts(parts: Iterable[Part], most: int | None, html: Callable[[str], SafeString]) -> list[CardText]:
    return [_text(part.text, most, html) for part in parts if part.text]


def _text(text: str, most: int | None, html: Callable[[str], SafeString]) -> CardText:
    lines, characters = FOLD_THRESHOLD
    is_long = len(text) > characters or text.count("\n") >= lines
    shown = text[: shown_length(text, most)]
    return CardText(shown, html(shown), hidden=len(text) - len(shown), is_long=is_long)


def _marked(shown: Shown, other: Shown | None) -> Shown:
    if other is None or shown.text == other.text:
        return shown
    if isinstance(shown, CardText) and isinstance(other, CardText):
        return replace(shown, html=rendering.marked_html(shown.html, other.html))
    return replace(shown, html=rendering.marked(shown.text, other.text))


def _media(parts: Iterable[Part], attached: Mapping[str, str]) -> list[CardMedia]:
    return [_medium(part, attached) for part in parts if part.type != "text"]


def _medium(part: Part, attached: Mapping[str, str]) -> CardMedia:
    source, digest = part.source or "", parse_digest(part.source)
    if digest is not None and (kind := attached.get(digest)) is not None:
        return CardMedia(part.type, digest, kind in IMAGE_TYPES, kind in VIDEO_TYPES, kind)
    if source.startswith(PREFIX):
        return CardMedia(part.type, None, False, False, f"missing attachment {source[:_SHOWN_SOURCE]}")
    # External media is never loaded: its address is shown as text.
    shown: Any = source if len(source) <= _SHOWN_SOURCE else f"{source[:_SHOWN_SOURCE]}…"
    return CardMedia(part.type, None, False, False, shown or "without content")
