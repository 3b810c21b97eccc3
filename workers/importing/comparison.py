"""An imported model against transformers' own code, on a few conversations."""

from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch import Tensor, nn

from workers.errors import RewardError
from workers.importing.checkpoint import Checkpoint
from workers.memory import memory_bytes
from workers.models.artifact import LocalScorer
from workers.schema import Part, Step, Task, Trajectory

_EXACT = 1e-4  # of the largest number: what float32 may lose in another order of sums
_SHARE = 0.8  # of the memory of the machine
_CHATS: tuple[tuple[tuple[str, str], ...], ...] = (
    (("user", "Where is order 17?"), ("agent", "It was sent on Monday.")),
    (("user", "Where is order 17?"), ("agent", "I do not know.")),
    (
        ("user", "Can I have a refund?"),
        ("agent", "Which order is it?"),
        ("user", "Number 17, in Zürich. 谢谢"),
        ("agent", "It is on its way:\n\n- 20 francs"),
    ),
)


def probe_chats() -> list[Trajectory]:
    return [
        Trajectory(
            steps=tuple(Step(source=source, message=(Part(text=text),)) for source, text in chat),  # type: ignore[arg-type]
            task=Task(id="probe"),
        )
        for chat in _CHATS
    ]


def compare_rewards(
    checkpoint: Checkpoint,
    scorer: LocalScorer,
    load: Callable[[], nn.Module],
    reward: Callable[[nn.Module, Any], Tensor],
) -> dict[str, Any]:
    """load: the model as its own code loads it, in float32. reward: what that model gives a rendered conversation.

    Returns {conversations, largest_difference}, or {not_compared: why}. Raises RewardError where they differ.
    """
    needed, room = 8 * checkpoint.parameters, _SHARE * memory_bytes()
    if needed > room:
        words = (
            f"two copies of the model need {needed / 1e9:.1f} GB, and there are {room / 1e9:.1f} GB for them"
        )
        return {"not_compared": words}
    rendered = [scorer.render(chat) for chat in probe_chats()]
    ours = [score.raw for score in scorer.score(rendered)]
    model = load()
    with torch.no_grad():
        theirs = [float(reward(model, each)) for each in rendered]
    return {"conversations": len(ours), "largest_difference": _difference(checkpoint, ours, theirs)}


def _difference(checkpoint: Checkpoint, ours: Sequence[float], theirs: Sequence[float]) -> float:
    largest = max(abs(mine - other) for mine, other in zip(ours, theirs, strict=True))
    if not largest <= _EXACT * max(1.0, *map(abs, theirs)):
        raise RewardError(
            f"{checkpoint.folder.name} gives other rewards here than with its own code ({ours[0]:.6g}, not "
            f"{theirs[0]:.6g}): this version cannot import it exactly, so it is not imported."
        )
    return largest
