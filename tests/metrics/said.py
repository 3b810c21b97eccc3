"""What people say in these tests: comments on runs of a desk, imported as anyone would."""

import io
import json
from typing import Any

from apps.accounts.models import Project
from apps.annotation.feedback.services import import_feedback

RUDE = ("Rude to the customer.", "The tone is insulting.", "So unfriendly to the customer.")
KIND = ("Polite and friendly.", "A kind and friendly tone.", "Polite to the customer.")
LOOKED = ("Looked the order up first.", "Checked the order before acting.", "It looked the order up.")
BLIND = ("Never looked the order up.", "Acted without checking the order.", "Did not look the order up.")


def run(task: str, *, rude: bool, blind: bool) -> dict[str, Any]:
    """Steps: 0 the customer, then a look-up unless blind, then the reply."""
    call = {
        "role": "assistant",
        "content": None,
        "tool_calls": [
            {
                "id": "c",
                "type": "function",
                "function": {"name": "find_order", "arguments": json.dumps({"order": task})},
            }
        ],
    }
    found = {"role": "tool", "tool_call_id": "c", "content": f"order {task}: a lamp, paid, shipped"}
    reply = "Read the terms yourself." if rude else "I am glad to help; your lamp is on its way."
    return {
        "messages": [
            {"role": "user", "content": f"Where is my order {task}?"},
            *([] if blind else [call, found]),
            {"role": "assistant", "content": reply},
        ]
    }


def comments(tasks: int) -> list[dict[str, Any]]:
    """Of each task two runs, of each run what is to be said of it."""
    lines = []
    for number in range(tasks):
        for rude, blind in ((number % 2 == 0, False), (number % 3 == 0, True)):
            task = f"desk-{number}"
            said = [(RUDE if rude else KIND)[number % 3], (BLIND if blind else LOOKED)[number % 3]]
            signs = [-1 if rude else 1, -1 if blind else 1]
            steps = [1 if blind else 2, 1]
            lines += [
                {
                    "task": {"id": task},
                    "trajectory": run(task, rude=rude, blind=blind),
                    "text": text,
                    "sign": sign,
                    "anchor": {"steps": [step, step]},
                    "annotator": "ann",
                }
                for text, sign, step in zip(said, signs, steps, strict=True)
            ]
    return lines


def import_comments(project: Project, lines: list[dict[str, Any]], campaign: str = "Words") -> None:
    stream = io.BytesIO("".join(json.dumps(line) + "\n" for line in lines).encode())
    result = import_feedback(project=project, stream=stream, format="comments", by=None, campaign=campaign)
    assert not result.rejected, result.rejected
