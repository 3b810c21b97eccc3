"""Items of one group have one task: where it is cut for one of them, all are shown the same of it."""

from collections.abc import Mapping, Sequence
from typing import Any

from workers.engine.groups import named_groups
from workers.engine.protocol import RenderedInput
from workers.schema import ScoreInput


def cut_groups_alike(
    items: Sequence[ScoreInput], rendered: dict[str, list[RenderedInput]], models: Mapping[str, Any]
) -> None:
    """rendered: by model, changed in place. models: by name, what renders."""
    places = named_groups(items)
    for name, batch in rendered.items():
        for group in places.values():
            rooms = [getattr(batch[place], "task_room", None) for place in group]
            room = min((room for room in rooms if room is not None), default=None)
            if room is None:
                continue
            for place, own in zip(group, rooms, strict=True):
                if own != room:
                    session = getattr(batch[place], "session", None)
                    batch[place] = models[name].render(
                        items[place].content, session=session, task_tokens=room
                    )
