"""The prompt of an item: the steps before the agent's first."""

from workers.schema import Trajectory
from workers.schema.items import Content


def prompt_of(content: Content) -> bytes | None:
    """Equal for answers to the same prompt; None for what has none (texts, token ids, numbers, empty prompts)."""
    if not isinstance(content, Trajectory) or not content.agent_steps:
        return None
    before = content.steps[: content.agent_steps[0]]
    texts = [f"{step.source}\0{step.text}" for step in before]
    return "\0".join(texts).encode(errors="surrogatepass") if texts else None
