"""How far the training of a generative model has come: what a checkpoint keeps besides weights and optimiser."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from workers.train.generative.stages import StageName


@dataclass(kw_only=True)
class TrainingProgress:
    """losses: one number for every step, of all stages. curve: of reinforcement, by step. best: {worth, step, weights}
    of the stage. measured: by stage that another followed, the validation after it."""

    losses: list[float] = field(default_factory=list)
    curve: list[dict[str, float]] = field(default_factory=list)
    step: int = 0
    patience_count: int = 0
    best: dict[str, Any] | None = None
    measured: dict[str, dict[str, float]] = field(default_factory=dict)
    stage: StageName = "teach"
    elapsed: float = 0.0
    micro_tokens: int = 0

    def progress_state(self) -> dict[str, Any]:
        return {name: getattr(self, attribute) for name, attribute in _KEYS.items()}

    def take_progress(self, state: Mapping[str, Any]) -> None:
        """Of a checkpoint, also of one from before there was more than reinforcement after the first stage."""
        if "stage" not in state:
            stage = "reinforce" if state["reinforces"] else "teach"
            measured = {"teach": state["taught"]} if state["taught"] else {}
            state = {**state, "stage": stage, "measured": measured}
        for name, attribute in _KEYS.items():
            setattr(self, attribute, state[name])


# Names in checkpoints, which do not change, and the attributes.
_KEYS = {
    **{
        name: name
        for name in ("losses", "curve", "step", "best", "measured", "stage", "elapsed", "micro_tokens")
    },
    "bad": "patience_count",
}
