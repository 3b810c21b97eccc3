"""What an agent wrote, step by step, whatever form the item came in."""

from workers.errors import RewardError
from workers.schema import Features, Part, ScoreInput, Step, Text, ToolCall, Trajectory
from workers.schema.part_text import parts_text


def agent_steps(item: ScoreInput) -> tuple[Step, ...]:
    """Raises RewardError for token ids and numbers, which have no text to look at."""
    content = item.content
    if isinstance(content, Trajectory):
        return tuple(content.steps[index] for index in content.agent_steps)
    if isinstance(content, Text):
        return (Step(source="agent", message=(Part(text=content.text),)),)
    form = "features" if isinstance(content, Features) else "input_ids"
    raise RewardError(
        f"this endpoint has a rule that reads what the agent wrote, and {form} have no text; send messages, "
        "prompt and response, or text.",
        pointer=f"/{form}",
    )


def texts(item: ScoreInput) -> list[str]:
    """By agent step: reasoning, message and tool calls, as one text."""
    return [step_text(step) for step in agent_steps(item)]


def step_text(step: Step) -> str:
    parts = (step.reasoning or "", message_of(step), *calls_text(step.tool_calls))
    return "\n".join(part for part in parts if part)


def observed(item: ScoreInput) -> list[str]:
    """By agent step, the results of its tools and the observations before the next agent step, as one text."""
    return ["\n".join(texts) for texts in results(item)]


def results(item: ScoreInput) -> list[list[str]]:
    """As `observed`, one text for each result that is not empty."""
    content = item.content
    if not isinstance(content, Trajectory):
        return [[] for _ in agent_steps(item)]
    seen: list[list[str]] = []
    for step in content.steps:
        if step.source == "agent":
            seen.append([])
        if seen and step.source in ("agent", "environment"):
            own = [message_of(step)] if step.source == "environment" else []
            seen[-1] += filter(None, [*own, *(parts_text(result.content) for result in step.observation)])
    return seen


def message_of(step: Step) -> str:
    return parts_text(step.message)


def calls_text(calls: tuple[ToolCall, ...]) -> list[str]:
    return [f"{call.name}({call.arguments_text})" for call in calls]
