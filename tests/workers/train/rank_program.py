"""What one of two ranks runs in test_ranks.py: `python -m tests.workers.train.rank_program FOLDER SCENARIO...`, or
`--run RUN_DIR EXAMPLES`.

scenario.json: recipe; stop_after: a step, or null; fails_above: {rank: examples}, memory for so many in one pass.
Results, of every rank: losses, validation losses, dropout's random state, micro_tokens, how many passes failed.
"""

import contextlib
import json
import os
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import torch
from torch.distributed.tensor import DTensor

from workers.models import renderer_of
from workers.objectives import collect
from workers.schema import read_records
from workers.schema.recipe import parse_recipe
from workers.train import __main__ as command
from workers.train.distributed import join_process_group
from workers.train.limits import TrainingLimits, TrainingStopped
from workers.train.multi_objective import MultiObjectiveModule
from workers.train.trainer import RewardTrainer


def train_scenario(folder: Path, scenario: dict[str, Any]) -> dict[str, Any]:
    recipe = parse_recipe(scenario["recipe"])
    renderer = renderer_of(recipe)
    training, validation = (
        collect([*read_records(folder / f"{split}.jsonl.zst")], renderer, recipe)
        for split in ("train", "validation")
    )
    process_group = join_process_group(torch.device("cpu"))
    torch.manual_seed(1)
    module = MultiObjectiveModule(recipe, training, seed=1)
    events: list[dict[str, Any]] = []
    trainer = RewardTrainer(
        module, recipe, validation, seed=1, report=lambda **event: events.append(event), process_group=process_group
    )  # fmt: skip
    checkpoints = folder / scenario["checkpoints"] if "checkpoints" in scenario else None
    trainer.limits = TrainingLimits(
        lambda: trainer.step == scenario.get("stop_after"), checkpoints=checkpoints
    )
    trainer.micro_tokens = trainer.limits.micro_tokens(trainer.micro_tokens)
    failures = _limit_memory(trainer, scenario.get("fails_above", {}).get(str(process_group.rank)))
    with contextlib.suppress(TrainingStopped), _counted_gathers() as gathers:
        trainer.run()
    return {
        "losses": trainer.losses,
        "steps": trainer.step,
        "validation": [event["validation"]["loss"] for event in events if "validation" in event],
        "random": torch.get_rng_state().sum().item(),
        "micro_tokens": trainer.micro_tokens,
        "failures": len(failures),
        "gathers": len(gathers),
        "weights": _sums(trainer.process_group.whole_weights(trainer.module)),
        "restored": _restored_weights(trainer),
        "sharded": trainer.process_group.is_sharded,
        "messages": [event["message"] for event in events if "message" in event],
    }


@contextlib.contextmanager
def _counted_gathers() -> Iterator[list[int]]:
    """The sizes of tensors that are made whole, other than by FSDP for its passes; norms are single numbers."""
    gathers: list[int] = []
    redistribute = DTensor.redistribute

    def counted(tensor: DTensor, *values: Any, **named: Any) -> DTensor:
        if tensor.numel() > 1:
            gathers.append(tensor.numel())
        return redistribute(tensor, *values, **named)

    DTensor.redistribute = counted  # type: ignore[method-assign]
    try:
        yield gathers
    finally:
        DTensor.redistribute = redistribute  # type: ignore[method-assign]


def _restored_weights(trainer: RewardTrainer) -> dict[str, float]:
    """The weights again, after they were kept as the best ones are, lost, and loaded."""
    kept = trainer.process_group.trained_weights(trainer.module)
    with torch.no_grad():
        for parameter in trainer.trainable:
            parameter.zero_()
    trainer.process_group.load_weights(trainer.module, kept)
    return _sums(trainer.process_group.whole_weights(trainer.module))


def _sums(weights: Mapping[str, torch.Tensor]) -> dict[str, float]:
    return {name: float(weight.double().abs().sum()) for name, weight in weights.items()}


def _limit_memory(trainer: RewardTrainer, most: int | None) -> list[int]:
    """An allocation that fails: of this rank, in the forward passes of training with more examples than `most`."""
    failures: list[int] = []
    trainer.module.forward = _limited(trainer.module.forward, most, failures)  # type: ignore[method-assign]
    return failures


def _limited(forward: Callable[..., torch.Tensor], most: int | None, failures: list[int]) -> Any:
    def limited(*values: Any) -> torch.Tensor:
        """values: of a method of the module or of its class; the examples come before the size of their batch."""
        indices = next(value for value in values if isinstance(value, Sequence))
        if most is not None and len(indices) > most:
            failures.append(len(indices))
            raise torch.OutOfMemoryError("injected")
        return forward(*values)

    return limited


def train_scenarios(folder: Path, names: Sequence[str]) -> int:
    """One after another, in one group of processes."""
    torch.set_num_threads(1)
    rank = join_process_group(torch.device("cpu")).rank
    for name in names:
        found = train_scenario(folder, json.loads((folder / f"{name}.json").read_text()))
        (folder / f"{name}-{rank}.out.json").write_text(json.dumps(found))
    return 0


def train_run(folder: Path, most: int) -> int:
    """`python -m workers.train` itself, with memory for so many examples in the second rank."""
    if os.environ["RANK"] == "1":
        MultiObjectiveModule.forward = _limited(MultiObjectiveModule.forward, most, [])  # type: ignore[method-assign]
    sys.argv = ["workers.train", str(folder)]
    return command.main()


if __name__ == "__main__":
    if sys.argv[1] == "--run":
        command.end(train_run(Path(sys.argv[2]), int(sys.argv[3])))
    command.end(train_scenarios(Path(sys.argv[1]), sys.argv[2:]))
