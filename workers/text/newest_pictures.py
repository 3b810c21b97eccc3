"""The renderer of models that look at pictures alone: after each agent step, the newest picture that was seen."""

import hashlib
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from workers.errors import InvalidRecord, RewardError
from workers.schema import Part, Step, Task, Trajectory
from workers.schema.conditions import Condition
from workers.schema.pictures import picture_places
from workers.schema.records import Source
from workers.text.pictures import MOST_PIXELS, PICTURE_TOKENS, Picture, PictureReading
from workers.text.rendered import Content, UnsharedInput

_GREY_PIXEL = "data:image/png;base64," + (
    "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAAAAAA6fptVAAAACklEQVR42mNoAAAAggCB2kUIOwAAAABJRU5ErkJggg=="
)


@dataclass(frozen=True)
class NewestPictures(UnsharedInput):
    """pictures: those that are read, in order. before: the place of the newest one before the first agent step. reads:
    by agent step the place of the newest one after it; None before there is any, and of steps that are cut."""

    pictures: tuple[Picture, ...]
    before: int | None
    reads: tuple[int | None, ...]
    truncated: bool = False

    @property
    def tokens(self) -> int:
        return PICTURE_TOKENS * len(self.pictures)

    @cached_property
    def key(self) -> bytes:
        seen = [[picture.digest for picture in self.pictures], self.before, self.reads]
        return hashlib.blake2b(repr(seen).encode(), digest_size=16).digest()


@dataclass(frozen=True)
class NewestPictureRenderer:
    """What follows an agent step up to the next one is its result, also after the last one. max_tokens: of which a
    picture takes PICTURE_TOKENS; the earliest go. tokenizer: of what texts are counted by."""

    pictures: PictureReading
    max_tokens: int
    tokenizer: Any
    rewrites = False
    reads_end = True
    named_sources = frozenset[Source]()
    conditioned: tuple[Condition, ...] = ()

    @property
    def warm_up_content(self) -> Trajectory:
        return _page()

    @property
    def probes(self) -> tuple[Trajectory, ...]:
        """For `template_fingerprint`: it reads no text."""
        return (_page(), _page(agent_first=True))

    def render(self, content: Content) -> NewestPictures:
        """Raises RewardError without an agent step or a picture, and for a picture that is damaged or too large."""
        if not isinstance(content, Trajectory):
            raise RewardError(
                "this model looks at pictures only; send a trajectory, or messages, with an image as a data URL."
            )
        agent = content.agent_steps
        if not agent:
            raise RewardError(
                "the trajectory has no agent step, so there is nothing to score.", pointer="/trajectory"
            )
        seen, newest = self._seen(content)
        reads = [newest[index - 1] if index else None for index in (*agent[1:], len(content.steps))]
        before = newest[agent[0] - 1] if agent[0] else None
        if reads[-1] is None:
            raise RewardError(
                "the trajectory has no picture, which is all that this model looks at; send the screenshots or frames "
                "of its steps as images with a data URL.",
                pointer="/trajectory",
            )
        used = sorted({place for place in (before, *reads) if place is not None})
        kept = used[-max(1, self.max_tokens // PICTURE_TOKENS) :]
        places = {place: number for number, place in enumerate(kept)}
        return NewestPictures(
            tuple(_decoded(*seen[place]) for place in kept),
            None if before is None else places.get(before),
            tuple(None if place is None else places.get(place) for place in reads),
            truncated=len(kept) < len(used),
        )

    def count(self, text: str) -> int:
        return len(self.tokenizer.encode(text, add_special_tokens=False))

    def model_input(self, rendered: NewestPictures) -> list[Any]:
        return [[picture.digest for picture in rendered.pictures], rendered.before, list(rendered.reads)]

    def settings(self) -> list[Any]:
        return [[self.max_tokens, PICTURE_TOKENS], [self.pictures.side, self.pictures.name]]

    def _seen(self, trajectory: Trajectory) -> tuple[list[tuple[int, Picture]], list[int | None]]:
        """All pictures with their step, and by step the place of the newest one so far."""
        seen: list[tuple[int, Picture]] = []
        newest: list[int | None] = []
        left = [MOST_PIXELS]
        for index, step in enumerate(trajectory.steps):
            try:
                seen += (
                    (index, picture)
                    for _, parts in picture_places(step)
                    for picture in self.pictures.pictures(parts, left)
                )
            except InvalidRecord as error:
                raise InvalidRecord(f"step {index + 1}: {error.message}") from None
            newest.append(len(seen) - 1 if seen else None)
        return seen, newest


def _decoded(index: int, picture: Picture) -> Picture:
    try:
        return picture.decoded()
    except InvalidRecord as error:
        raise InvalidRecord(f"step {index + 1}: {error.message}") from None


def _page(*, agent_first: bool = False) -> Trajectory:
    page = Part(type="image", source=_GREY_PIXEL, media_type="image/png")
    steps = (
        Step(source="user", message=(page,)),
        Step(source="agent", message=(Part(text="Done."),)),
    )
    return Trajectory(steps=steps[::-1] if agent_first else steps, task=Task(id="probe"))
