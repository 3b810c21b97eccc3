"""What a reward program is given: an item as dictionaries, lists, texts and numbers."""

from typing import Any

from workers.errors import InvalidRecord, RewardError
from workers.schema import Features, Part, ScoreInput, Step, Task, Text, Trajectory, parse_json
from workers.schema.part_text import parts_text


def plain_item(item: ScoreInput) -> dict[str, Any]:
    """{"task", "steps", "outcome", "reference", "metadata"}; docs/reward-design.md lists what is in them.

    Raises RewardError for token ids, of which nothing is known.
    """
    content = item.content
    if isinstance(content, Trajectory):
        steps = [_plain_step(step) for step in content.steps]
        task, reward, success = content.task, content.reward, content.success
    else:
        steps = [_plain_step(step) for step in _steps(content)]
        task, reward, success = Task(id=""), None, None
    return {
        "task": {"id": task.id, "instruction": task.instruction, "metadata": task.metadata},
        "steps": steps,
        "outcome": {"reward": reward, "success": success},
        "reference": _reference(task.reference if item.reference is None else item.reference),
        "metadata": item.metadata,
    }


def _steps(content: Any) -> list[Step]:
    if isinstance(content, Text):
        return [Step(source="agent", message=(Part(text=content.text),))]
    if isinstance(content, Features):
        return [Step(source="agent", features=row) for row in content.rows]
    raise RewardError(
        "this endpoint has a reward program, which reads words or numbers, and input_ids are neither; send messages, a "
        "trajectory, text or features.",
        pointer="/input_ids",
    )


def _plain_step(step: Step) -> dict[str, Any]:
    return {
        "source": step.source,
        "speaker": step.speaker,
        "message": parts_text(step.message),
        "reasoning": step.reasoning,
        "tool_calls": [{"name": call.name, "arguments": call.arguments} for call in step.tool_calls],
        "observations": [parts_text(result.content) for result in step.observation],
        "features": None if step.features is None else list(step.features),
        "reward": step.reward,
    }


def _reference(text: str | None) -> Any:
    """The array or object that it is, else its text."""
    if text is None:
        return None
    try:
        value = parse_json(text)
    except InvalidRecord:
        return text
    return value if isinstance(value, dict | list) else text
