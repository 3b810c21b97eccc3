"""What only a GPU can show: `python -m benchmarks.gpu_check [--device cuda|cpu] [NAME...]`, or `make gpu-check`.

Each check is a function of a device and a size. `--device cpu` runs the same functions with a tiny model, which shows
that they work and nothing about a GPU. Exit status: 1 where a check fails; a check that cannot run says "not run: ..."
and does not fail.
"""

import argparse
import json
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Literal

import torch

from benchmarks.gpu_check_runs import (
    CheckSize,
    check_recipe,
    comparisons,
    decoder_folder,
    resumed_losses,
    run_losses,
)
from benchmarks.train_vs_trl import save_classifier, seconds_of_ours, train_with_trl, trl_rows
from workers.models import build, renderer_of
from workers.objectives import collect
from workers.schema.decoder_estimate import DecoderShape, estimate_decoder
from workers.train.multi_objective import MultiObjectiveModule

Verdict = Literal["passed", "failed", "not run"]
EXACT = 1e-4  # of the largest reward or gradient: what float32 may lose
# Of the standard deviation of rewards; of random weights, whose rewards differ little.
BATCHING_BOUND, BFLOAT16_BOUND = 0.2, 0.5
RANKS_BOUND = 1e-3  # of validation losses, in float32
LEAST_SPEED_UP = 1.0  # over TRL's RewardTrainer as it comes
LEAST_SHARE = 0.25  # of the rate of a large matrix product in bfloat16 on the same GPU


@dataclass(frozen=True, slots=True)
class GpuCheck:
    """The result of a check. measured: what `text` says, as numbers."""

    name: str
    verdict: Verdict
    text: str
    measured: dict[str, float]


TINY = CheckSize(width=32, layers=2, heads=4, vocabulary=300, pairs=6, words=12)


def packing_exactness(device: str, size: CheckSize, folder: Path) -> GpuCheck:
    """FlexAttention over prefix trees (on a CPU: SDPA by blocks) in float32 against separate passes."""
    records, base = comparisons(size), decoder_folder(folder, size)
    recipe = check_recipe(base, precision="float32", lora_rank=0, gradient_checkpointing=False)
    torch.manual_seed(0)
    model = build(recipe, device=device)
    model.backbone.in_bfloat16 = False
    items = [model.backbone.renderer.render(side) for each in records[:4] for side in (each.a, each.b)]
    found = []
    for batches in ([items], [[item] for item in items]):
        model.zero_grad(set_to_none=True)
        rewards = torch.cat([model(batch).rewards.flatten() for batch in batches])
        rewards.square().sum().backward()
        gradients = [each.grad.flatten() for each in model.parameters() if each.grad is not None]
        found.append((rewards.detach(), torch.cat(gradients).detach()))
    (packed, packed_slope), (alone, alone_slope) = found
    rewards_off = float((packed - alone).abs().max() / alone.abs().max())
    gradients_off = float((packed_slope - alone_slope).abs().max() / alone_slope.abs().max())
    how = model.backbone.base.config._attn_implementation  # type: ignore[attr-defined]
    return GpuCheck(
        "packing_exactness",
        "passed" if max(rewards_off, gradients_off) <= EXACT else "failed",
        f"{how}: rewards differ by {rewards_off:.1e}, gradients by {gradients_off:.1e} of the largest; bound {EXACT:g}",
        {"rewards": rewards_off, "gradients": gradients_off},
    )


def bfloat16_bounds(device: str, size: CheckSize, folder: Path) -> GpuCheck:
    """Rewards with frozen weights in bfloat16 against float32, and packed against separate ones in bfloat16."""
    records, base = comparisons(size), decoder_folder(folder, size)
    rewards: dict[str, torch.Tensor] = {}
    for weights in ("float32", "bfloat16"):
        torch.manual_seed(0)
        model = build(check_recipe(base, base_weights=weights, lora_rank=8), device=device)
        model.backbone.in_bfloat16 = weights == "bfloat16"
        items = [model.backbone.renderer.render(side) for each in records for side in (each.a, each.b)]
        with torch.no_grad():
            rewards[weights] = model(items).rewards.flatten().float()
            if weights == "bfloat16":
                alone = torch.cat([model([item]).rewards.flatten() for item in items]).float()
    spread = float(rewards["float32"].std())
    off = float((rewards["bfloat16"] - rewards["float32"]).abs().max()) / spread
    batch_off = float((rewards["bfloat16"] - alone).abs().max()) / spread
    return GpuCheck(
        "bfloat16_bounds",
        "passed" if off <= BFLOAT16_BOUND and batch_off <= BATCHING_BOUND else "failed",
        f"of the standard deviation of {len(alone)} rewards: {off:.3f} from float32 (bound "
        f"{BFLOAT16_BOUND:g}), {batch_off:.3f} by batching (bound {BATCHING_BOUND:g})",
        {"from_float32": off, "by_batching": batch_off},
    )


def two_ranks(device: str, size: CheckSize, folder: Path) -> GpuCheck:
    """Two processes (nccl, on a CPU gloo), as copies and sharded, against one: the same validation losses. And a
    sharded run that goes on from a checkpoint, against itself."""
    if device == "cuda" and torch.cuda.device_count() < 2:
        return GpuCheck("two_ranks", "not run", "not run: one GPU", {})
    records, base = comparisons(size), decoder_folder(folder, size)
    recipe = check_recipe(
        base, precision="float32", lora_rank=8, epochs=2, batch_pairs=4, patience=0, checkpoint_seconds=0.0
    )
    losses = {
        name: run_losses(folder / name, records, replace(recipe, sharding=sharding), device, processes)  # type: ignore[arg-type]
        for name, sharding, processes in (
            ("one", "never", 1),
            ("copies", "never", 2),
            ("sharded", "always", 2),
        )
    }
    off = max(
        abs(a - b) for name in ("copies", "sharded") for a, b in zip(losses["one"], losses[name], strict=True)
    )
    resumed_off = abs(resumed_losses(folder / "sharded", processes=2)[-1] - losses["sharded"][-1])
    return GpuCheck(
        "two_ranks",
        "passed" if max(off, resumed_off) <= RANKS_BOUND else "failed",
        f"validation losses of two processes, copies and sharded, differ from one's by {off:.1e}, of a resumed sharded "
        f"run by {resumed_off:.1e}; bound {RANKS_BOUND:g}",
        {"difference": off, "resumed": resumed_off},
    )


def throughput(device: str, size: CheckSize, folder: Path) -> GpuCheck:
    """Pairs a second of training next to TRL's RewardTrainer as it comes: the same decoder, pairs and tokens."""
    records, base = comparisons(size), decoder_folder(folder, size)
    recipe = check_recipe(
        base, lora_rank=0, gradient_checkpointing=False, epochs=1, batch_pairs=8, patience=0
    )
    torch.manual_seed(0)
    module = MultiObjectiveModule(
        recipe, collect(records, renderer_of(recipe), recipe), seed=0, device=device
    )
    save_classifier(module, recipe, folder / "start")
    rows = trl_rows(module.examples)
    is_cpu = device == "cpu"
    ours = seconds_of_ours(module, recipe)
    theirs = train_with_trl(
        folder / "start", rows, folder / "trl", bfloat16=not is_cpu, tuned=False, use_cpu=is_cpu
    )
    ratio = theirs / ours
    is_slower = ratio < LEAST_SPEED_UP and not is_cpu  # a tiny model on a CPU measures Python
    return GpuCheck(
        "throughput",
        "failed" if is_slower else "passed",
        f"{len(rows) / ours:.1f} pairs/s, {ratio:.2f}x TRL's RewardTrainer at its defaults; on a GPU at least "
        f"{LEAST_SPEED_UP:g}x",
        {"pairs_per_second": len(rows) / ours, "vs_trl": ratio},
    )


def peak_share(device: str, size: CheckSize, folder: Path) -> GpuCheck:
    """Floating-point operations a second of training, by the estimate's formula, over those of a matrix product."""
    records, base = comparisons(size), decoder_folder(folder, size)
    recipe = check_recipe(
        base, lora_rank=0, gradient_checkpointing=False, epochs=1, batch_pairs=8, patience=0
    )
    config = json.loads((base / "config.json").read_text(encoding="utf-8"))
    shape = DecoderShape.read(config)
    assert shape is not None
    torch.manual_seed(0)
    examples = collect(records, renderer_of(recipe), recipe)
    module = MultiObjectiveModule(recipe, examples, seed=0, device=device)
    tokens = module.model.backbone.cost(examples.rendered)
    longest = max(len(each.ids) for each in examples.rendered)
    flops = tokens * estimate_decoder(shape, replace(recipe, max_tokens=longest)).token_flops
    seconds_of_ours(module, recipe)  # compiles and fills caches
    rate = flops / seconds_of_ours(module, recipe)
    peak = matmul_rate(device, 8192 if device == "cuda" else 256)
    share = rate / peak
    return GpuCheck(
        "peak_share",
        "failed" if share < LEAST_SHARE and device == "cuda" else "passed",
        f"{rate / 1e12:.3g} TFLOP/s, {100 * share:.1f} % of a matrix product's {peak / 1e12:.3g}; on a GPU at least "
        f"{100 * LEAST_SHARE:.0f} %",
        {"flops": rate, "matmul_flops": peak, "share": share},
    )


CHECKS: dict[str, Callable[[str, CheckSize, Path], GpuCheck]] = {
    check.__name__: check for check in (packing_exactness, bfloat16_bounds, two_ranks, throughput, peak_share)
}


def matmul_rate(device: str, size: int, repeats: int = 10) -> float:
    """Floating-point operations a second of square matrix products in bfloat16 (on a CPU in float32)."""
    dtype = torch.bfloat16 if device == "cuda" else torch.float32
    left, right = (torch.randn(size, size, device=device, dtype=dtype) for _ in range(2))
    for _ in range(3):
        left @ right
    _synchronize(device)
    started = time.perf_counter()
    for _ in range(repeats):
        left @ right
    _synchronize(device)
    return repeats * 2.0 * size**3 / (time.perf_counter() - started)


def run_checks(device: str, size: CheckSize, names: Sequence[str]) -> list[GpuCheck]:
    """A check that raises has failed, with what it raised."""
    found = []
    for name in names:
        if device == "cuda" and not torch.cuda.is_available():
            found.append(GpuCheck(name, "not run", "not run: no GPU", {}))
            continue
        with tempfile.TemporaryDirectory(prefix="gpu-check-") as scratch:
            try:
                found.append(CHECKS[name](device, size, Path(scratch)))
            except Exception as error:  # the other checks are still worth their results
                words = str(error).strip().partition("\n")[0]
                found.append(GpuCheck(name, "failed", f"{type(error).__name__}: {words}", {}))
    return found


def _synchronize(device: str) -> None:
    if device == "cuda":
        torch.cuda.synchronize()


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.gpu_check", description=__doc__)
    parser.add_argument("names", nargs="*", metavar="NAME", help=f"{', '.join(CHECKS)}; all without")
    parser.add_argument("--device", choices=("cuda", "cpu"), default="cuda")
    parser.add_argument("--json", action="store_true", help="one JSON object on standard output")
    options = parser.parse_args()
    if unknown := set(options.names) - set(CHECKS):
        parser.error(f"there is no check {', '.join(sorted(unknown))}; there are {', '.join(CHECKS)}.")
    size = CheckSize() if options.device == "cuda" else TINY
    found = run_checks(options.device, size, options.names or list(CHECKS))
    if options.json:
        print(json.dumps({check.name: asdict(check) for check in found}))
    else:
        for check in found:
            mark = "" if check.verdict == "not run" else f"{check.verdict}: "
            print(f"{check.name}: {mark}{check.text}")
    return 1 if any(check.verdict == "failed" for check in found) else 0


if __name__ == "__main__":
    sys.exit(main())
