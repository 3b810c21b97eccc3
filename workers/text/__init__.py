"""From trajectories to token ids: one renderer, in training and serving alike."""

from workers.text.chunks import Chunk, ChunkRenderer, Content, Rendered
from workers.text.fingerprint import template_fingerprint
from workers.text.grounding import NAMES as GROUNDING
from workers.text.segments import SOURCES

__all__ = ["GROUNDING", "SOURCES", "Chunk", "ChunkRenderer", "Content", "Rendered", "template_fingerprint"]
