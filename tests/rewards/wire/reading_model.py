"""A model that reads everything of a conversation, without torch."""

from typing import Any

from tests.workers.engine.fakes import FakeModel, FakeRendered
from workers.schema import Trajectory
from workers.text.segments import segments


class ReadingModel(FakeModel):
    """Whose rewards change with every letter of every step, and with whose it is."""

    def render(self, content: Any, *, session: Any = None) -> FakeRendered:
        if not isinstance(content, Trajectory):
            return super().render(content, session=session)
        steps: list[tuple[int, ...]] = []
        seen: list[int] = []
        for step in content.steps:
            for segment in segments(step):
                seen += [(1 + len(seen) % 11) * ord(letter) for letter in f"{segment.source}:{segment.text}"]
            if step.source == "agent":
                steps.append(tuple(seen))
        return FakeRendered(tuple(steps))
