"""Length and format of what an agent wrote: what a reward should not depend on by mistake."""

from workers.schema import Trajectory
from workers.schema.patterns import TextPattern

_WORD = TextPattern(r"\S+")
_LIST = TextPattern(r"(?m)^\s*(?:[-*•]|\d{1,3}[.)])\s")
_HEADING = TextPattern(r"(?m)^#{1,6}\s")
_BOLD = TextPattern(r"\*\*[^*\n]{1,200}\*\*")
_FENCE = "```"

FEATURE_LABELS = {
    "agent_steps": "Agent steps",
    "words": "Words written",
    "words_per_step": "Words per step",
    "tool_calls": "Tool calls",
    "list_items": "List items",
    "headings": "Headings",
    "bold": "Bold passages",
    "code_blocks": "Code blocks",
    "exclamation_marks": "Exclamation marks",
    "question_marks": "Question marks",
}


def text_features(trajectory: Trajectory) -> dict[str, float]:
    """By the names of FEATURE_LABELS, over all agent steps."""
    steps = [trajectory.steps[index] for index in trajectory.agent_steps]
    text = "\n".join(step.text for step in steps)
    words = len(_WORD.findall(text))
    return {
        "agent_steps": len(steps),
        "words": words,
        "words_per_step": words / max(len(steps), 1),
        "tool_calls": sum(len(step.tool_calls) for step in steps),
        "list_items": len(_LIST.findall(text)),
        "headings": len(_HEADING.findall(text)),
        "bold": len(_BOLD.findall(text)),
        "code_blocks": text.count(_FENCE) // 2,
        "exclamation_marks": text.count("!"),
        "question_marks": text.count("?"),
    }
