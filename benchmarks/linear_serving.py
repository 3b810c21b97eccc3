"""Scoring by a linear model, next to a frozen step-encoder: `python -m benchmarks.linear_serving [--json] [--quick]`.

Answers of HH, and trajectories of tau-bench of 20 to 30 agent steps, each once, in requests of sixteen and of one, by
both models on the same path: rendering, batching, scoring, uncertainty, composition of the reward, in one process with
one thread; with `--http` also by a reward service that is started here, four clients at a time. The linear model is
fitted to comparisons of the same data; the step-encoder's heads are random, which does not change its speed. Ratios
above 1 are for the linear model. `profile_ms`: CPU milliseconds
of an item that the linear model spends on each part.
"""

import argparse
import asyncio
import contextlib
import os
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, TypeVar

import django
import torch

from benchmarks.by_data_set import measure_each
from benchmarks.import_scaling import own_database, server
from benchmarks.load import ask
from benchmarks.peers import version_of
from benchmarks.public_data import PAIRS, data_folder
from benchmarks.serving import deployed, ours
from workers.models import Lineage, build, load, renderer_of, save
from workers.models.backbones.linear import LinearBackbone
from workers.objectives import Examples, collect_training
from workers.schema import PreferenceRecord, Text, Trajectory, parse_item, to_messages
from workers.schema.recipe import parse_recipe
from workers.train.convex import ConvexTrainer
from workers.train.multi_objective import MultiObjectiveModule
from workers.train.penalty_choice import ChosenPenalty

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "apps.config.settings")

ITEMS, FITTED, QUICK_ITEMS, QUICK_FITTED = {"hh": 320, "tau_bench": 64}, 800, {"hh": 16, "tau_bench": 2}, 8
STEPS = {"hh": (1, 10), "tau_bench": (20, 30)}  # of the agent, at least and at most
KINDS = ("linear", "step-encoder")
REQUESTS = (16, 1)  # items of each
CLIENTS = 4
_VARIANCE = 0.3
Json = dict[str, Any]
Result = TypeVar("Result")


def trajectories(name: str, count: int) -> list[Trajectory]:
    """Distinct ones, of so many agent steps as STEPS says."""
    least, most = STEPS[name]
    found: dict[str, Trajectory] = {}
    for record in PAIRS[name](data_folder()):
        if isinstance(record, PreferenceRecord):
            for side in (record.a, record.b):
                if least <= len(side.agent_steps) <= most:
                    found[side.content_hash] = side
    return list(found.values())[:count]


def save_linear(name: str, folder: Path, count: int) -> Path:
    """Fitted to some comparisons, with eight heads."""
    recipe = parse_recipe({"backbone": "linear"})
    records = [record for record in PAIRS[name](data_folder()) if isinstance(record, PreferenceRecord)]
    examples = collect_training(records[:count], renderer_of(recipe), recipe)
    module = MultiObjectiveModule(recipe, examples, seed=0)
    trainer = ConvexTrainer(
        module,
        recipe,
        Examples(),
        seed=0,
        report=lambda **event: None,
        penalty=ChosenPenalty(_VARIANCE, embedding_weight=0.0),
    )
    trainer.run()
    module.model.backbone.finish_training()
    reward = {"median": 0.0, "std": 1.0}
    save(module.model, folder, recipe=recipe, reward=reward, criteria={}, lineage=Lineage())
    return folder


def save_step_encoder(folder: Path) -> Path:
    recipe = parse_recipe({"heads_only": True, "max_tokens": 16_384})
    torch.manual_seed(0)
    reward = {"median": 0.0, "std": 1.0}
    save(build(recipe), folder, recipe=recipe, reward=reward, criteria={}, lineage=Lineage())
    return folder


def score_in_process(folder: Path, items: Sequence[Json], at_once: int) -> Json:
    """{per_second, ms, cpu_per_second, cpu_ms, render_ms: of an item}. Every item is new to the caches."""
    version, batcher = version_of(folder)
    batcher.wait_seconds = 0.0  # for others, of whom there are none
    version.warm_up(Text("Hello."))
    parsed = [parse_item(item) for item in items]
    rendering = 0.0
    started, cpu_started = time.perf_counter(), time.process_time()
    for start in range(0, len(parsed), at_once):
        began = time.perf_counter()
        prepared = version.render(parsed[start : start + at_once])
        rendering += time.perf_counter() - began
        asyncio.run(version.score(prepared))
    seconds, cpu_seconds = time.perf_counter() - started, time.process_time() - cpu_started
    batcher.close()
    return {
        "per_second": len(parsed) / seconds,
        "ms": 1000 * seconds / len(parsed),
        "cpu_per_second": len(parsed) / cpu_seconds,
        "cpu_ms": 1000 * cpu_seconds / len(parsed),
        "render_ms": 1000 * rendering / len(parsed),
    }


def score_over_http(kind: str, items: Sequence[Json]) -> Json:
    """The same, one item to a request, by several clients: {per_second, ms}."""
    with ours(kind) as (url, headers):
        ask(url, [{"text": "warm"}], clients=1, headers=headers)
        load = ask(url, items, clients=CLIENTS, headers=headers)
    return {"per_second": load.per_second, "ms": 1000 / load.per_second}


def linear_parts(folder: Path, items: Sequence[Json]) -> Json:
    """Milliseconds of an item by part; scores are with features and uncertainty."""
    model = load(folder)
    backbone = model.model.backbone
    assert isinstance(backbone, LinearBackbone)
    seconds: dict[str, float] = {}

    def timed(name: str, function: Callable[[], Result]) -> Result:
        began = time.process_time()
        found = function()
        seconds[name] = seconds.get(name, 0.0) + time.process_time() - began
        return found

    for item in items:
        content = timed("parse", lambda: parse_item(item).content)  # noqa: B023
        rendered = timed("render", lambda: model.render(content))  # noqa: B023
        timed("features", lambda: backbone.new_cache(0).add([rendered]))  # noqa: B023
        timed("features and scores", lambda: model.score([rendered]))  # noqa: B023
        timed("reasons", lambda: model.reasons(content))  # noqa: B023
    return {name: 1000 * spent / len(items) for name, spent in seconds.items()}


def measure(name: str, *, quick: bool, http: bool, folder: Path) -> Json:
    items = [
        {"messages": to_messages(run)} for run in trajectories(name, (QUICK_ITEMS if quick else ITEMS)[name])
    ]
    folders = {
        "linear": save_linear(name, folder / "linear", QUICK_FITTED if quick else FITTED),
        "step-encoder": save_step_encoder(folder / "step-encoder"),
    }
    found: Json = {"items": len(items), "features": load(folders["linear"]).manifest["backbone"]["features"]}
    for at_once in REQUESTS:
        found[f"of {at_once}"] = _compared(
            {kind: score_in_process(folders[kind], items, at_once) for kind in folders}
        )
    found["profile_ms"] = linear_parts(folders["linear"], items[:: max(1, len(items) // 40)])
    if http:
        for kind, model in folders.items():
            deployed(f"{kind}-{name.replace('_', '-')}", model)
        found["http"] = _compared(
            {kind: score_over_http(f"{kind}-{name.replace('_', '-')}", items) for kind in folders}
        )
    return found


def _compared(found: dict[str, Json]) -> Json:
    """ratio: of the rates; cpu_ratio: of those by CPU seconds, which other work on the machine disturbs less."""
    ratios = {
        name: found["linear"][rate] / found["step-encoder"][rate]
        for name, rate in (("ratio", "per_second"), ("cpu_ratio", "cpu_per_second"))
        if rate in found["linear"]
    }
    return found | ratios


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.linear_serving", description=__doc__)
    parser.add_argument("--json", action="store_true", help="one JSON object on standard output")
    parser.add_argument("--quick", action="store_true", help="few items: does it run?")
    parser.add_argument(
        "--http", action="store_true", help="also by a reward service, with a database of its own"
    )
    parser.add_argument("--data", action="append", choices=[*ITEMS], help="only these (all without)")
    arguments = parser.parse_args()
    torch.set_num_threads(1)
    with contextlib.ExitStack() as stack:
        if arguments.http:
            stack.enter_context(server())
            django.setup()
            stack.enter_context(own_database("linear_serving"))
        return measure_each(
            arguments.data or [*ITEMS],
            lambda name, folder: measure(name, quick=arguments.quick, http=arguments.http, folder=folder),
            _lines,
            as_json=arguments.json,
        )


def _lines(name: str, found: Json) -> list[str]:
    lines = [f"{name}: {found['items']} items, {found['features']:,} features"]
    for way in (*(f"of {at_once}" for at_once in REQUESTS), "http"):
        if way in found:
            key = "cpu_ms" if way != "http" else "ms"
            ms = ", ".join(f"{kind} {found[way][kind][key]:.2f} {key}" for kind in KINDS)
            ratio = found[way].get("cpu_ratio", found[way]["ratio"])
            lines.append(f"    {way}: {ms} an item; {ratio:.1f} times the rate")
    parts = ", ".join(f"{part} {ms:.2f}" for part, ms in found["profile_ms"].items())
    return [*lines, f"    the linear model's milliseconds: {parts}"]


if __name__ == "__main__":
    sys.exit(main())
