"""A renderer that renders each trajectory once, where several models read the same ones."""

from typing import Any

from workers.schema import Trajectory
from workers.text.rendered import Content


class RememberingRenderer:
    """Renders as `renderer` does. What it has rendered stays in memory as long as it does."""

    def __init__(self, renderer: Any) -> None:
        self.renderer = renderer
        self.rewrites = renderer.rewrites
        self.named_sources = renderer.named_sources
        self.conditioned = renderer.conditioned
        self._rendered: dict[str, Any] = {}

    def render(self, content: Content, **limits: Any) -> Any:
        if limits or not isinstance(content, Trajectory):
            return self.renderer.render(content, **limits)
        name = content.content_hash
        if name not in self._rendered:
            self._rendered[name] = self.renderer.render(content)
        return self._rendered[name]

    def count(self, text: str) -> int:
        return int(self.renderer.count(text))

    def model_input(self, rendered: Any) -> list[Any]:
        found: list[Any] = self.renderer.model_input(rendered)
        return found

    def settings(self) -> list[Any]:
        found: list[Any] = self.renderer.settings()
        return found
