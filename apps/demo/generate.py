"""Write the sample files: `python -m apps.demo.generate [FOLDER]`. The same files every time, byte for byte.

trajectories.jsonl holds OpenAI chats with their outcomes; the others are `import_feedback` records, all of origin
`simulated`, that name trajectories by the `id` of their line. test_tasks.txt: the tasks the demo holds out.
"""

import json
import sys
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from apps.demo import annotators
from apps.demo.agents import Conversation, conversations
from apps.demo.world import TASKS, Dice

SAMPLE = Path(__file__).parent / "sample"
FEEDBACK = ("pairs", "comments", "steps", "rubric", "ratings", "rankings", "outcomes")
VERIFIER_ERRORS = 0.05
HELD_OUT = 24  # the last tasks: three of each family


def verdict(conversation: Conversation) -> tuple[float, bool]:
    """What an automatic check makes of it: it sees the database and the facts told, not the manner, and may err."""
    score = conversation.world.score
    harm = sum("unwanted" in fault or "policy" in fault for fault in score.faults)
    value = max(0.0, 0.6 * score.goal + 0.4 * score.told - 0.3 * harm)
    if Dice(f"verifier {conversation.id}").chance(VERIFIER_ERRORS):
        value = 1.0 - value
    return round(value, 3), value >= 0.75


def trajectory(conversation: Conversation) -> dict[str, Any]:
    reward, success = verdict(conversation)
    return {
        "id": conversation.id,
        "task": {"id": conversation.task.id, "instruction": conversation.task.instruction},
        "agent": {"name": conversation.agent},
        "messages": conversation.messages,
        "reward": reward,
        "success": success,
        "metadata": {"family": conversation.task.family, "simulated": True},
    }


def outcome(conversation: Conversation) -> dict[str, Any]:
    reward, success = verdict(conversation)
    item = {"trajectory_id": conversation.id}
    return {
        "task": {"id": conversation.task.id},
        "trajectory": item,
        "success": success,
        "reward": reward,
        "origin": "simulated",
    }


def files() -> dict[str, str]:
    """File name to content."""
    all_ = list(conversations())
    records: dict[str, Iterable[dict[str, Any]]] = {
        "trajectories": map(trajectory, all_),
        "pairs": annotators.pairs(all_),
        "comments": annotators.comments(all_),
        "steps": annotators.steps(all_),
        "rubric": annotators.rubric(all_),
        "ratings": annotators.ratings(all_),
        "rankings": annotators.rankings(all_),
        "outcomes": map(outcome, all_),
    }
    held_out = {"test_tasks.txt": "".join(f"{task}\n" for task in list(TASKS)[-HELD_OUT:])}
    return {f"{name}.jsonl": "".join(map(_line, lines)) for name, lines in records.items()} | held_out


def _line(record: dict[str, Any]) -> str:
    return json.dumps(record, ensure_ascii=False, separators=(",", ":")) + "\n"


def main(folder: Path) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    for name, text in files().items():
        (folder / name).write_text(text, encoding="utf-8", newline="\n")
        sys.stdout.write(f"{folder / name}: {text.count(chr(10))} lines, {len(text.encode())} bytes\n")


if __name__ == "__main__":
    main(Path(sys.argv[1]) if len(sys.argv) > 1 else SAMPLE)
