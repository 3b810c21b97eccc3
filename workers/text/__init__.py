"""From trajectories to what a model reads: one renderer for each kind of backbone, in training and serving."""

from workers.text.chunks import Chunk, ChunkRenderer, Chunks
from workers.text.conversations import ConversationRenderer, Tokens
from workers.text.fingerprint import template_fingerprint
from workers.text.grounding import NAMES as GROUNDING
from workers.text.hybrid_texts import HybridRenderer, HybridTexts
from workers.text.numeric import NumberRenderer, Numbers
from workers.text.remembering import RememberingRenderer
from workers.text.rendered import Content, Rendered, Renderer, Session
from workers.text.segments import SOURCES
from workers.text.step_texts import StepTextRenderer, StepTexts
from workers.text.structure import NAMES as STRUCTURE

__all__ = [
    "GROUNDING",
    "SOURCES",
    "STRUCTURE",
    "Chunk",
    "ChunkRenderer",
    "Chunks",
    "Content",
    "ConversationRenderer",
    "HybridRenderer",
    "HybridTexts",
    "NumberRenderer",
    "Numbers",
    "RememberingRenderer",
    "Rendered",
    "Renderer",
    "Session",
    "StepTextRenderer",
    "StepTexts",
    "Tokens",
    "template_fingerprint",
]
