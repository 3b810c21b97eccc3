"""How a checkpoint's conversations become tokens, in words."""

from workers.importing.checkpoint import Checkpoint
from workers.models.backbones.decoder import conversation_renderer
from workers.text import ReadingRule, WholeConversationRenderer

_CLOCK = ("strftime_now", "datetime.now")


def checkpoint_renderer(
    checkpoint: Checkpoint, max_tokens: int, rule: ReadingRule
) -> WholeConversationRenderer:
    """Raises RewardError for a tokenizer or a template that cannot be used."""
    checkpoint.require_tokenizer()
    checkpoint.chat_template  # noqa: B018 - refuses several
    renderer = conversation_renderer(checkpoint.folder, max_tokens=max_tokens, rule=rule)
    assert isinstance(renderer, WholeConversationRenderer)
    return renderer


def template_words(checkpoint: Checkpoint) -> str:
    if checkpoint.chat_template:
        return "its own chat template, tokenised as a whole: the ids of apply_chat_template"
    return "it has none; messages are shown as `User: ...` and `Assistant: ...`, which it may not have been trained on"


def template_notes(checkpoint: Checkpoint, renderer: WholeConversationRenderer) -> list[str]:
    """What becomes of what the template does not show."""
    dialect = renderer.dialect
    ways = [
        (not dialect.system, "System messages are shown as messages of the user: the template has none."),
        (not dialect.tools, "Tool calls and results are shown as text: the template has none."),
        (not dialect.reasoning, "Reasoning is shown between <think> tags: the template has none."),
        (
            not dialect.free_turns,
            "Messages are joined or empty ones added, so that user and assistant take turns.",
        ),
        (
            any(word in checkpoint.chat_template for word in _CLOCK),
            "The template tells the date; it is always 26 Jul 2024, so that rewards do not change with the day.",
        ),
    ]
    notes = [words for applies, words in ways if applies]
    return [
        *notes,
        "Messages after the last one of the agent are not read.",
        "Special tokens in messages are broken up.",
    ]
