"""How many labels each way of choosing them needs: `python -m benchmarks.label_efficiency [--json] [--quick] [--draw]`.

All pairs of the training tasks can be annotated. Each strategy of `workers.active_learning` selects some, batch by
batch, given the earlier answers; the built-in recipe is trained on the answers and measured on held-out tasks. What
counts is how many labels a strategy needs to reach 95 % of the accuracy that all labels give, relative to random
selection.

`sample`: the sample world's conversations, simulated annotators, against the hidden reward. `fine_grained`: FineGrained
answers with their passages, against what people said.
"""

import argparse
import json
import random
import statistics
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import combinations
from pathlib import Path
from typing import Any

import numpy as np
import torch

from apps.demo import annotators
from apps.demo.world import Dice
from benchmarks.drawing import shares
from benchmarks.public_data import data_folder, fine_grained
from benchmarks.result_cache import ResultCache
from benchmarks.sample_world_data import pairwise_record, sample
from workers.active_learning.features import encoder_features, model_features
from workers.active_learning.measures import make_candidate_pool
from workers.active_learning.order import STRATEGIES, AnnotatedData, Strategy, rank_items
from workers.active_learning.posterior import Numbers, fit
from workers.active_learning.scale import scale_features
from workers.device import choose_device
from workers.errors import RewardError
from workers.models import LoadedModel, build
from workers.schema import PreferenceRecord, Trajectory
from workers.schema.recipe import Recipe
from workers.train.cross_validation import CrossValidation
from workers.train.reward_statistics import score_rendered

SEEDS = 5
BATCH = 25
BUDGETS = (25, 50, 100, 150, 200, 300, 400, 600)
WANTED = 0.95
ACTIVE: Strategy = "mix"  # what a campaign's plan begins with
IMAGES = Path(__file__).parents[1] / "docs" / "images"
PER_TASK = 10
REPEATS = 3  # trainings on the same labels: what one reaches depends on which few tasks it is validated on
_CACHE_BYTES = 1024**3
_CHOSEN = {"a": 1.0, "b": 0.0, "tie": 0.5, "both_bad": 0.5}


@dataclass(frozen=True)
class World:
    """trajectories: of training tasks and held-out ones. pairs: what may be asked about, places in `trajectories`.

    ask: the answer to a pair, the same whenever it is asked. test: (a, b) of held-out tasks, `a` truly the better one.
    """

    trajectories: list[Trajectory]
    pairs: list[tuple[int, int]]
    ask: Callable[[int], PreferenceRecord]
    test: list[tuple[int, int]]


def sample_world(seed: int, *, quick: bool) -> World:
    of = sample(seed, tasks=15 if quick else 60, per_task=4 if quick else PER_TASK)
    held_out = set(of.held_out)
    names = list(of.trajectories)
    by_task: dict[str, list[int]] = {}
    for place, name in enumerate(names):
        by_task.setdefault(of.conversations[name].task.id, []).append(place)
    pairs, test = list[tuple[int, int]](), list[tuple[int, int]]()
    for group in by_task.values():
        for a, b in combinations(group, 2):
            if names[a] not in held_out:
                pairs.append((a, b))
                continue
            gap = of.conversations[names[a]].world.reward - of.conversations[names[b]].world.reward
            if abs(gap) >= 0.03:
                test.append((a, b) if gap > 0 else (b, a))

    def ask(place: int) -> PreferenceRecord:
        a, b = (of.conversations[names[side]] for side in pairs[place])
        who = annotators.someone(Dice(f"label efficiency {a.id} {b.id}"))
        return pairwise_record(annotators.preference(who, a, b), of.trajectories)

    return World([of.trajectories[name] for name in names], pairs, ask, test)


def fine_grained_world(seed: int, *, quick: bool) -> World:
    records = list(fine_grained(data_folder()))
    tasks = list(dict.fromkeys(record.a.task.id for record in records))
    random.Random(seed).shuffle(tasks)
    tasks = tasks[:24] if quick else tasks
    held_out, kept = set(tasks[: len(tasks) // 3]), set(tasks)
    trajectories, places = list[Trajectory](), dict[str, int]()
    pairs, said, test = list[tuple[int, int]](), list[PreferenceRecord](), list[tuple[int, int]]()
    for record in records:
        if record.a.task.id not in kept or record.a.content_hash == record.b.content_hash:
            continue
        sides = []
        for side in (record.a, record.b):
            if side.content_hash not in places:
                places[side.content_hash] = len(trajectories)
                trajectories.append(side)
            sides.append(places[side.content_hash])
        if record.a.task.id not in held_out:
            pairs.append((sides[0], sides[1]))
            said.append(record)
        elif record.choice in ("a", "b"):
            test.append((sides[0], sides[1]) if record.choice == "a" else (sides[1], sides[0]))
    return World(trajectories, pairs, said.__getitem__, test)


WORLDS: dict[str, Callable[..., World]] = {"sample": sample_world, "fine_grained": fine_grained_world}


class Bench:
    def __init__(self, *, quick: bool, say: Callable[..., None], trunk: bool) -> None:
        self.quick = quick
        self.say = say
        self.trunk = trunk
        self.like = build(Recipe())
        self.cache = self.like.backbone.new_cache(_CACHE_BYTES)
        self.budgets = (10, 20) if quick else BUDGETS
        self.batch = 10 if quick else BATCH
        self._made: tuple[tuple[str, int], _Work] | None = None

    def find(self, part: str, seed: int) -> dict[str, Any]:
        """part: DATA/full, {full, pool}; DATA/STRATEGY, {accuracy: one at each budget}."""
        data, _, name = part.partition("/")
        work = self._work(data, seed)
        started = time.monotonic()
        if name == "full":
            everything = list(range(len(work.world.pairs)))
            found: dict[str, Any] = {"full": work.accuracy(everything)[0], "pool": len(everything)}
        else:
            found = {"accuracy": [round(accuracy, 4) for accuracy in work.run(name)]}  # type: ignore[arg-type]
        self.say(part=part, seed=seed, **found, seconds=round(time.monotonic() - started, 1))
        return found

    def _work(self, data: str, seed: int) -> "_Work":
        if self._made is None or self._made[0] != (data, seed):
            world = WORLDS[data](seed, quick=self.quick)
            recipe = Recipe(epochs=2) if self.quick else Recipe()
            rendered = [self.like.backbone.renderer.render(trajectory) for trajectory in world.trajectories]
            for _ in self.like.backbone.encode_ahead(rendered, self.cache):
                continue
            self._made = (data, seed), _Work(self, world, recipe, rendered, seed)
        return self._made[1]


class _Work:
    def __init__(self, bench: Bench, world: World, recipe: Recipe, rendered: list[Any], seed: int) -> None:
        self.bench, self.world, self.recipe, self.rendered, self.seed = bench, world, recipe, rendered, seed
        self.of_pool = sorted({side for pair in world.pairs for side in pair})
        self.place = {side: place for place, side in enumerate(self.of_pool)}
        self.items = [tuple(self.place[side] for side in pair) for pair in world.pairs]
        self.plain = scale_features(
            encoder_features(
                bench.like.backbone, [rendered[name] for name in self.of_pool], cache=bench.cache
            )
        )

    def run(self, strategy: Strategy) -> list[float]:
        """The accuracy at each budget."""
        asked: list[int] = []
        found, features = [], self.plain
        for budget in self.bench.budgets:
            while len(asked) < min(budget, len(self.items)):
                asked += self._next(strategy, asked, features, min(self.bench.batch, budget - len(asked)))
            accuracy, model = self.accuracy(asked)
            found.append(accuracy)
            if self.bench.trunk and model is not None:
                features = scale_features(
                    model_features(
                        model.model, [self.rendered[name] for name in self.of_pool], cache=self.bench.cache
                    )
                )
        return found

    def _next(self, strategy: Strategy, asked: list[int], features: Numbers, count: int) -> list[int]:
        open_ = [place for place in range(len(self.items)) if place not in set(asked)]
        pool = make_candidate_pool([self.items[place] for place in open_], features)
        done = make_candidate_pool([self.items[place] for place in asked], features)
        said = np.array([_CHOSEN[self.world.ask(place).choice] for place in asked])
        posterior = fit(done.differences, said) if asked else None
        known = AnnotatedData(posterior, done.item_features, np.zeros((0, features.shape[1])))
        order = rank_items(pool, known, strategy, count=count, seed=self.seed * 1000 + len(asked)).order
        return [open_[place] for place in order[:count]]

    def accuracy(self, asked: Sequence[int]) -> tuple[float, LoadedModel | None]:
        """On held-out tasks, by the recipe trained on these labels, the mean over REPEATS trainings; and the first."""
        records = [self.world.ask(place) for place in asked]
        found = [self._trained(records, repeat) for repeat in range(1 if self.bench.quick else REPEATS)]
        return statistics.mean(accuracy for accuracy, _ in found), found[0][1]

    def _trained(self, records: Sequence[PreferenceRecord], repeat: int) -> tuple[float, LoadedModel | None]:
        """One half where the labels teach nothing."""
        folds = CrossValidation(
            self.recipe,
            self.seed + 1000 * repeat,
            choose_device("auto"),
            _quiet,
            cache=self.bench.cache,
            like=self.bench.like,
        )
        try:
            _, model = folds.train(records)
        except RewardError:
            return 0.5, None
        wanted = sorted({side for pair in self.world.test for side in pair})
        found = score_rendered(model.model, [self.rendered[name] for name in wanted], cache=self.bench.cache)
        raw = found.raw.tolist()
        score = dict(zip(wanted, raw, strict=True))
        right = [(score[a] > score[b]) + 0.5 * (score[a] == score[b]) for a, b in self.world.test]
        return statistics.mean(right), model


def crossing(budgets: Sequence[int], accuracy: Sequence[float], wanted: float) -> float | None:
    """Labels at which the accuracy first reaches `wanted`, straight between budgets; None where it never does."""
    before = (0.0, 0.5)
    for budget, value in zip(budgets, accuracy, strict=True):
        if value >= wanted:
            share = (wanted - before[1]) / (value - before[1]) if value > before[1] else 1.0
            return before[0] + share * (budget - before[0])
        before = (float(budget), value)
    return None


def summary(budgets: Sequence[int], by_seed: Sequence[dict[str, Any]]) -> dict[str, Any]:
    """By strategy, labels needed by the mean accuracy over seeds, with an interval by drawing seeds.

    random, active, ratio: at random, in the order campaigns choose by unless told otherwise, and the second over the
    first; None where it was never reached, or not asked for.
    """
    dice = np.random.default_rng(0)
    names = list(by_seed[0]["strategies"])
    values = {name: np.array([seed_result["strategies"][name] for seed_result in by_seed]) for name in names}
    full = np.array([seed_result["full"] for seed_result in by_seed])
    draws = dice.integers(len(by_seed), size=(2000, len(by_seed)))

    def needed(name: str, seeds: Any) -> float:
        found = crossing(budgets, values[name][seeds].mean(0).tolist(), WANTED * full[seeds].mean())
        return np.inf if found is None else found

    everyone = np.arange(len(by_seed))
    out: dict[str, Any] = {}
    for name in names:
        labels, of_random = needed(name, everyone), needed("random", everyone)
        drawn = np.array([needed(name, sampled) / needed("random", sampled) for sampled in draws[:500]])
        known = drawn[np.isfinite(drawn)]
        out[name] = {
            "labels": None if np.isinf(labels) else labels,
            "ratio": labels / of_random if np.isfinite(labels) and np.isfinite(of_random) else None,
            "interval": [float(bound) for bound in np.quantile(known, [0.025, 0.975])]
            if len(known) > 20
            else None,
            "accuracy": values[name].mean(0).tolist(),
            "spread": values[name].std(0, ddof=1).tolist() if len(by_seed) > 1 else None,
        }
    labels_of = {name: one["labels"] for name, one in out.items()}
    found = {"random": labels_of.get("random"), "active": labels_of.get(ACTIVE)}
    found["ratio"] = out[ACTIVE]["ratio"] if ACTIVE in out else None
    about = {"full": float(full.mean()), "budgets": list(budgets), "seeds": len(by_seed)}
    return found | about | {"strategies": out}


def draw(data: str, found: dict[str, Any]) -> None:
    """Mean accuracies, with one standard error over seeds to either side."""
    series = {}
    for name, one in found["strategies"].items():
        errors = [value / found["seeds"] ** 0.5 for value in one["spread"] or [0.0] * len(one["accuracy"])]
        rows = zip(found["budgets"], one["accuracy"], errors, strict=True)
        series[name.replace("_", " ")] = [
            (n, value, value - error, value + error) for n, value, error in rows
        ]
    level = WANTED * found["full"]
    title = f"Accuracy by labels: {data.replace('_', ' ')}, {found['seeds']} seeds"
    drawn = shares(title, series, (f"{WANTED:.0%} of what all labels give", level))
    (IMAGES / f"label-efficiency-{data}.svg").write_text(drawn, encoding="utf-8")


def _say(**event: Any) -> None:
    sys.stderr.write(json.dumps(event) + "\n")


def _quiet(**event: Any) -> None:
    """What a training says of itself."""


def _lines(found: dict[str, Any]) -> Iterator[str]:
    for data, one in found.items():
        yield f"{data}: all labels give {100 * one['full']:.1f} %; labels to 95 % of that"
        for name, each in one["strategies"].items():
            labels = "more than were asked" if each["labels"] is None else f"{each['labels']:.0f}"
            yield f"    {name}: {labels}, {each['ratio'] or float('nan'):.2f} of random {each['interval']}"


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.label_efficiency", description=__doc__)
    parser.add_argument("--json", action="store_true", help="one JSON object on standard output")
    parser.add_argument("--quick", action="store_true", help="few tasks, one seed, two epochs: does it run?")
    parser.add_argument("--data", action="append", choices=WORLDS, help="only these (all without)")
    parser.add_argument("--strategy", action="append", choices=STRATEGIES, help="only these (all without)")
    parser.add_argument("--seeds", type=int, default=SEEDS)
    parser.add_argument("--first-seed", type=int, default=0)
    parser.add_argument("--threads", type=int, help="for torch; its own choice without")
    parser.add_argument(
        "--trunk", action="store_true", help="look through the newest model, not the encoder alone"
    )
    parser.add_argument("--draw", action="store_true", help="write docs/images/label-efficiency-*.svg")
    parser.add_argument(
        "--out", type=Path, help="every seed's figures, written as they come; what is there is kept"
    )
    arguments = parser.parse_args()
    if arguments.threads:
        torch.set_num_threads(arguments.threads)
    try:
        bench = Bench(quick=arguments.quick, say=_say, trunk=arguments.trunk)
        kept = ResultCache(arguments.out)
        count = 1 if arguments.quick else arguments.seeds
        seeds = range(arguments.first_seed, arguments.first_seed + count)
        strategies = arguments.strategy or STRATEGIES

        def of_seed(data: str, seed: int) -> dict[str, Any]:
            curves = {name: kept.get(f"{data}/{name}", seed, bench.find)["accuracy"] for name in strategies}
            return kept.get(f"{data}/full", seed, bench.find) | {"strategies": curves}

        found = {
            data: summary(bench.budgets, [of_seed(data, seed) for seed in seeds])
            for data in arguments.data or WORLDS
        }
    except RewardError as error:
        sys.stderr.write(f"{error.message}\n")
        return 2
    if arguments.draw:
        for data, one in found.items():
            draw(data, one)
    print(json.dumps(found) if arguments.json else "\n".join(_lines(found)))
    return 0


if __name__ == "__main__":
    sys.exit(main())
