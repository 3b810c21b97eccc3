"""The renderer of the hybrid backbone: what the linear one reads, and what the agent wrote at each step as tokens."""

from dataclasses import dataclass, field, fields
from typing import Any

from workers.text.chunks import ChunkRenderer
from workers.text.rendered import Content
from workers.text.step_texts import StepTextRenderer, StepTexts

END_CHUNKS = 8  # read of each end of a step's text, whose middle is left out by the encoder


@dataclass(frozen=True)
class HybridTexts(StepTexts):
    """chunks: by agent step, the framed token ids of what the agent wrote and called (`agent_texts`), in its order;
    none where it wrote nothing. They follow from `agent_texts`, so that the key does not need them."""

    chunks: tuple[tuple[tuple[int, ...], ...], ...] = field(compare=False, kw_only=True)


@dataclass(frozen=True)
class HybridRenderer(StepTextRenderer):
    """tokens: cuts into chunks. Of a step with more than 2 * END_CHUNKS of them, the encoder reads the first END_CHUNKS
    and the last; n-grams and structure read all of it, so it is not flagged as truncated."""

    tokens: ChunkRenderer

    def render(self, content: Content, *, task_tokens: int | None = None) -> HybridTexts:
        texts = super().render(content)
        chunks = tuple(self._chunks(text) for text in texts.agent_texts)
        return HybridTexts(**{part.name: getattr(texts, part.name) for part in fields(texts)}, chunks=chunks)

    def model_input(self, rendered: StepTexts) -> list[Any]:
        assert isinstance(rendered, HybridTexts)
        return [*super().model_input(rendered), [[list(ids) for ids in step] for step in rendered.chunks]]

    def settings(self) -> list[Any]:
        limits, *rest = super().settings()
        sizes = [*limits, self.tokens.chunk_tokens, END_CHUNKS]
        return [sizes, *rest, self.tokens.tokenizer.to_str(), *self.tokens.prompt_settings()]

    def _chunks(self, text: str) -> tuple[tuple[int, ...], ...]:
        ids = self.tokens.token_ids(text)
        if not ids:
            return ()
        pieces = self.tokens.split(ids)
        if len(pieces) > 2 * END_CHUNKS:
            pieces = [*pieces[:END_CHUNKS], *pieces[-END_CHUNKS:]]
        return tuple(self.tokens.framed(piece) for piece in pieces)
