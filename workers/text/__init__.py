"""From trajectories to what a model reads: one renderer for each kind of backbone, in training and serving."""

from workers.text.agent_spans import AgentSpanRenderer, AgentSpans
from workers.text.chunks import Chunk, ChunkRenderer, Chunks
from workers.text.classifier_inputs import ClassifierInput, ClassifierInputs, ClassifierRenderer, TextForm
from workers.text.conversations import ConversationRenderer, Tokens
from workers.text.fingerprint import template_fingerprint
from workers.text.gated_conversations import GatedConversationRenderer, GatedTokens
from workers.text.grounding import NAMES as GROUNDING
from workers.text.hybrid_texts import HybridRenderer, HybridTexts
from workers.text.numeric import NumberRenderer, Numbers
from workers.text.remembering import RememberingRenderer
from workers.text.rendered import Content, Rendered, Renderer, Session
from workers.text.segments import SOURCES
from workers.text.step_conversations import StepRenderer
from workers.text.step_format import StepFormat
from workers.text.step_texts import StepTextRenderer, StepTexts
from workers.text.structure import NAMES as STRUCTURE
from workers.text.whole_conversations import ReadingRule, WholeConversationRenderer

__all__ = [
    "GROUNDING",
    "SOURCES",
    "STRUCTURE",
    "AgentSpanRenderer",
    "AgentSpans",
    "Chunk",
    "ChunkRenderer",
    "Chunks",
    "ClassifierInput",
    "ClassifierInputs",
    "ClassifierRenderer",
    "Content",
    "ConversationRenderer",
    "GatedConversationRenderer",
    "GatedTokens",
    "HybridRenderer",
    "HybridTexts",
    "NumberRenderer",
    "Numbers",
    "ReadingRule",
    "RememberingRenderer",
    "Rendered",
    "Renderer",
    "Session",
    "StepFormat",
    "StepRenderer",
    "StepTextRenderer",
    "StepTexts",
    "TextForm",
    "Tokens",
    "WholeConversationRenderer",
    "template_fingerprint",
]
