"""The pictures of a trajectory in a prompt: a bounded number of them, scaled down and encoded again, and the text that
names which are there and which are left out.

Of more pictures than a prompt takes, the first, the last and those at even distances between them are chosen. Each is
a JPEG without metadata of at most PICTURE_BYTES, after a line of JSON with its number and its step.
"""

from collections.abc import Collection
from dataclasses import dataclass
from typing import Any

from workers.prompts.templates import PromptPicture, quoted
from workers.prompts.trajectory_text import shown
from workers.schema import Trajectory
from workers.schema.pictures import encode_jpeg, picture_places
from workers.text.pictures import is_at_hand, read_picture

PICTURE_BYTES = 160_000  # of one; sixteen of them fit into a request of the relay with their text


@dataclass(frozen=True, slots=True)
class PictureLimits:
    """What a language model takes. count: pictures of one prompt; 0 where it reads none. pixels: on the longer side."""

    count: int = 0
    pixels: int = 768

    def half(self) -> "PictureLimits":
        """Of each of two trajectories in one prompt."""
        return PictureLimits(self.count and max(self.count // 2, 1), self.pixels)


NO_PICTURES = PictureLimits()


@dataclass(frozen=True, slots=True)
class PicturePlace:
    """number: among the pictures of the trajectory, from 1. step: its index. source: None where it has none."""

    number: int
    step: int
    source: str | None


@dataclass(frozen=True, slots=True)
class TrajectoryView:
    """A trajectory as a prompt has it. text: a line of JSON for each step. chosen: the pictures that go with it."""

    text: str
    chosen: tuple[PicturePlace, ...]
    pixels: int

    def pictures(self, name: str = "the run") -> tuple[PromptPicture, ...]:
        """Read, scaled down and encoded. name: of the trajectory in the prompt. Raises InvalidRecord where one is
        damaged."""
        return tuple(_encoded(place, name, self.pixels) for place in self.chosen)


def view_trajectory(
    trajectory: Trajectory,
    limits: PictureLimits,
    *,
    closely: Collection[int] = (),
    pictures_of: Collection[int] | None = None,
) -> TrajectoryView:
    """closely: see `shown`. pictures_of: steps whose pictures are chosen from; None: all. Without pictures, or for a
    model that reads none, the text is that of `shown`."""
    places = list_pictures(trajectory) if limits.count else []
    if not places:
        return TrajectoryView(shown(trajectory, closely=closely), (), limits.pixels)
    chosen = choose_pictures(trajectory, limits, pictures_of=pictures_of)
    numbers = {place.number for place in chosen}
    notes: dict[int, dict[str, Any]] = {}
    for place in places:
        note = notes.setdefault(place.step, {})
        name = "pictures" if place.number in numbers else "pictures left out"
        note[name] = [*note.get(name, ()), place.number]
    head = {"pictures": len(places), "that follow": [place.number for place in chosen]}
    text = shown(trajectory, closely=closely, notes=notes, head=head)
    return TrajectoryView(text, chosen, limits.pixels)


def list_pictures(trajectory: Trajectory) -> list[PicturePlace]:
    """All pictures of the trajectory in order, those that are not at hand too."""
    found: list[PicturePlace] = []
    for step, content in enumerate(trajectory.steps):
        for _, parts in picture_places(content):
            for part in parts:
                if part.type == "image":
                    found.append(PicturePlace(len(found) + 1, step, part.source))
    return found


def choose_pictures(
    trajectory: Trajectory, limits: PictureLimits, *, pictures_of: Collection[int] | None = None
) -> tuple[PicturePlace, ...]:
    """Of those at hand: the first, the last, and others at even distances."""
    if not limits.count:
        return ()
    known = [
        place
        for place in list_pictures(trajectory)
        if (pictures_of is None or place.step in pictures_of) and is_at_hand(place.source)
    ]
    return tuple(known[index] for index in spread(len(known), limits.count))


def spread(count: int, most: int) -> list[int]:
    """At most so many of the indices below `count`, at even distances; of one, the last."""
    if count <= most:
        return list(range(count))
    if most == 1:
        return [count - 1]
    return [round(number * (count - 1) / (most - 1)) for number in range(most)]


def _encoded(place: PicturePlace, name: str, pixels: int) -> PromptPicture:
    assert place.source is not None  # or it were not at hand
    digest, picture = read_picture(place.source)
    label = quoted({"picture of": name, "number": place.number, "step": place.step})
    return PromptPicture(label, f"{digest} {pixels}", encode_jpeg(picture, pixels, PICTURE_BYTES))
