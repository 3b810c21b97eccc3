"""A project with something to compare."""

from typing import Any

from apps.annotation import services
from apps.annotation.models import Campaign
from apps.trajectories.models import Step, Task, Trajectory
from tests.annotation.rows import trajectory


def add_pair(campaign: Campaign, name: str, well: str, badly: str, *, length: int = 3) -> None:
    instruction = f"Refund order {name}. The customer is in a hurry, and the parcel never came."
    task = Task.objects.create(project=campaign.project, external_id=name, instruction=instruction)
    runs = [run(task, text, length, success=text == well) for text in (well, badly)]
    services.add_items(campaign=campaign, items=[services.ItemSpec(trajectories=runs)])


def run(task: Task, text: str, length: int, *, success: bool) -> Trajectory:
    """Two turns that all runs of a task share, then `length` of its own."""
    texts = ["Hello, how can I help?", *(f"{text} ({number})" for number in range(length))]
    row = trajectory(task, text, texts=texts, success=success)
    call = {"name": "find_order", "arguments": {"order": text}, "id": "c1", "raw": None, "extra": {}}
    result = {"content": part(f"{text}\n" * 12), "call_id": "c1", "extra": {}}
    Step.objects.filter(trajectory=row, index=2).update(tool_calls=[call], observation=[result])
    return row


def part(text: str) -> list[dict[str, Any]]:
    return [{"type": "text", "text": text, "source": None, "media_type": None, "extra": {}}]


def add_item(campaign: Campaign, name: str, *said: str, length: int = 3) -> None:
    """One item of a run for each of `said`."""
    task = Task.objects.create(
        project=campaign.project, external_id=name, instruction=f"Refund order {name}."
    )
    runs = [run(task, text, length, success=True) for text in said]
    services.add_items(campaign=campaign, items=[services.ItemSpec(trajectories=runs)])
