"""What our reward models reach on public data: `python -m benchmarks.results [--json] [--quick] [--write FILE]`.

Five folds by task, pooled: everything is judged by a model that saw nothing of its task. Next to it stand rules that
need no model, with the paired difference to each; for comparisons also a bag of bigrams trained on the same folds.
"""

import argparse
import json
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import torch

from benchmarks.bag_of_bigrams import bag_of_bigrams
from benchmarks.docs_writer import write_between
from benchmarks.public_data import DATA, TOPICAL_CRITERIA, data_folder
from workers.device import choose_device
from workers.errors import RewardError
from workers.evaluate.comparison import compare_predictions
from workers.evaluate.predictions import ScoredRecord
from workers.evaluate.preference import predictions
from workers.evaluate.report import report_of
from workers.models import build
from workers.schema import FeedbackRecord
from workers.schema.recipe import parse_recipe
from workers.schema.records import record_trajectories
from workers.train.cross_validation import CrossValidation

_CACHE_BYTES = 1024**3
_QUICK_TASKS = 12
_WORDS = {
    "longer": "longer",
    "shorter": "shorter",
    "fewer_steps": "fewer steps",
    "no_error": "no error",
    "first_step": "first step",
    "last_step": "last step",
    "most_common": "most common step",
}

_FROZEN = {"folds": 5}
_TOPICAL = {"objective": "regression", "criteria_weights": dict.fromkeys(TOPICAL_CRITERIA, 1.0)}
_UNFROZEN = _FROZEN | {
    "unfrozen": True,
    "epochs": 2,
    "encoder_learning_rate": 5e-5,
    "learning_rate": 5e-4,
    "batch_pairs": 16,
    "batch_tokens": 8192,
    "max_tokens": 768,
}


@dataclass(frozen=True, slots=True)
class Case:
    """what: the part of the report that is looked at, and the number in it."""

    title: str
    data: str
    recipe: dict[str, Any]
    what: tuple[str, str] = ("preference", "accuracy")


_STEPS = {"objective": "process"}
_FIRST = ("steps", "first_error_accuracy")
CASES = {
    "hh-frozen": Case("HH harmless, frozen", "hh", _FROZEN),
    "hh-unfrozen": Case("HH harmless, unfrozen", "hh", _UNFROZEN),
    "fine-grained-frozen": Case("FineGrained, frozen", "fine_grained", _FROZEN),
    "fine-grained-unfrozen": Case(
        "FineGrained, unfrozen", "fine_grained", _UNFROZEN | {"epochs": 1, "max_tokens": 2048}
    ),
    "pandalm-frozen": Case("PandaLM majority, frozen", "pandalm", _FROZEN),
    "pandalm-unfrozen": Case("PandaLM majority, unfrozen", "pandalm", _UNFROZEN),
    "tau-bench-pairs": Case("tau-bench pairs, frozen", "tau_bench", _FROZEN),
    "tau-bench-outcome": Case(
        "tau-bench outcome", "tau_bench_outcomes", _FROZEN | {"objective": "outcome"}, ("outcome", "auc")
    ),
    "mint-outcome": Case(
        "MINT HotpotQA outcome", "mint_hotpotqa", _FROZEN | {"objective": "outcome"}, ("outcome", "auc")
    ),
    "word-sorting": Case("BIG-Bench Mistake, word sorting", "word_sorting", _FROZEN | _STEPS, _FIRST),
    "arithmetic": Case("BIG-Bench Mistake, arithmetic", "multistep_arithmetic", _FROZEN | _STEPS, _FIRST),
    "failures": Case("AgentRx and Who & When", "failures", _FROZEN | _STEPS, ("located", "accuracy")),
    "topical-chat": Case("Topical-Chat criteria", "topical_chat", _FROZEN | _TOPICAL, ("scores", "spearman")),
}
CASES |= {
    f"{name.removesuffix('-frozen')}-{backbone}": replace(
        case,
        title=f"{case.title.removesuffix(', frozen')}, {backbone}",
        recipe=_FROZEN | case.recipe | {"backbone": backbone},
    )
    for name, case in CASES.items()
    if not name.endswith("-unfrozen")
    for backbone in ("linear", "hybrid")
}
_TABLES = {
    "preference": "Comparisons: accuracy in %",
    "outcome": "Outcomes: AUC",
    "steps": "First errors: found exactly, or that there is none, in %",
    "located": "Failures: the weakest step is the first error, in %",
    "scores": "Criteria: Spearman's correlation, the mean over criteria",
}


def measure(case: Case, *, quick: bool, seed: int, say: Callable[..., None]) -> dict[str, Any]:
    """{value, interval, n, baselines, also, folds, records, seconds}, next to the case's title and part."""
    started = time.monotonic()
    records: list[FeedbackRecord] = list(DATA[case.data](data_folder()))
    recipe = parse_recipe(case.recipe)
    if quick:
        tasks = dict.fromkeys(record_trajectories(record)[0].task.id for record in records)
        kept = set(list(tasks)[:_QUICK_TASKS])
        records = [record for record in records if record_trajectories(record)[0].task.id in kept]
        recipe = replace(recipe, epochs=1, folds=2, max_tokens=256)
    like = None if recipe.unfrozen else build(recipe)
    cache = like.backbone.new_cache(_CACHE_BYTES) if like else None
    like = None if recipe.backbone == "linear" else like  # it has nothing to share but what it has read
    folds = CrossValidation(recipe, seed, choose_device("auto"), say, cache=cache, like=like)
    found = folds.score_held_out(records)
    report = report_of(found.scored_records, found.validation, criteria={recipe.criterion})
    part, name = case.what
    whole = (report["steps"] or {}).get("located") if part == "located" else report[part]
    baselines = {
        _WORDS[rule]: {
            "value": one[name if name in one else "accuracy"],
            "difference": one["difference"],
            "interval": one["interval"],
        }
        for rule, one in whole["baselines"].items()
    }
    if part == "preference":
        baselines["bag of bigrams"] = _beside_bigrams(found.scored_records, folds, whole["accuracy"])
    return {
        "title": case.title,
        "part": part,
        "value": whole[name],
        "interval": whole["interval"],
        "n": whole["n"],
        "baselines": baselines,
        "also": _also(part, report),
        "folds": recipe.folds,
        "records": len(records),
        "seconds": time.monotonic() - started,
    }


def _beside_bigrams(judged: list[ScoredRecord], folds: CrossValidation, accuracy: float) -> dict[str, Any]:
    found = predictions(judged, {folds.recipe.criterion})
    peer = bag_of_bigrams(
        found, [folds.fold_of(prediction.record, folds.recipe.folds, 0) for prediction in found]
    )
    against = compare_predictions(found, peer)
    return {
        "value": accuracy - against["difference"],
        "difference": against["difference"],
        "interval": against["interval"],
    }


def _also(part: str, report: dict[str, Any]) -> dict[str, Any]:
    """Other figures of the same report."""
    if part == "outcome":
        return {"within_task": report["outcome"]["within_task"], "best_of_n": report["outcome"]["best_of_n"]}
    if part in ("steps", "located"):
        return {key: report["steps"].get(key) for key in ("f1", "f1_interval", "errors", "located")}
    if part == "scores":
        return {"criteria": report["scores"]["criteria"]}
    return {
        "calibration_error": report["calibration"]["ece"],
        "length_controlled": report["preference"]["length_controlled"],
    }


def tables(results: dict[str, dict[str, Any]]) -> Iterator[str]:
    """Markdown, a table for every kind of feedback."""
    for part, heading in _TABLES.items():
        rows = [result for result in results.values() if result["part"] == part]
        if not rows:
            continue
        rules = list(dict.fromkeys(rule for row in rows for rule in row["baselines"]))
        yield f"### {heading}\n"
        extra = ["detectable", *(["length-controlled"] if part == "preference" else [])]
        yield f"| | n | model | {' | '.join([*rules, *extra])} | baselines not beaten | seconds |"
        yield f"|---|---|---|{'---|' * len(rules + extra)}---|---|"
        for row in rows:
            cells = [_rule(row["baselines"].get(rule), part) for rule in rules]
            detectable = _detectable(row)
            cells.append("–" if detectable is None else _number(detectable, part))
            if part == "preference":
                cells.append(_length_controlled(row))
            model = f"**{_number(row['value'], part)}** {_between(row['interval'], part)}"
            unbeaten = ", ".join(_unbeaten(row)) or "none"
            yield (
                f"| {row['title']} | {row['n']} | {model} | {' | '.join(cells)} | {unbeaten} "
                f"| {row['seconds']:.0f} |"
            )
        yield ""


def _rule(one: dict[str, Any] | None, part: str) -> str:
    if one is None:
        return ""
    return f"{_number(one['value'], part)}: {_number(one['difference'], part, '+')} {_between(one['interval'], part)}"


def _detectable(result: dict[str, Any]) -> float | None:
    """The smallest true difference to the best baseline whose interval lies above 0 four times in five; None where
    there is no interval."""
    best = max(result["baselines"].values(), key=lambda baseline: baseline["value"])
    if best["interval"] is None:
        return None
    low, high = best["interval"]
    return (high - low) / (2 * 1.96) * (1.96 + 0.84)


def _length_controlled(result: dict[str, Any]) -> str:
    found = result["also"].get("length_controlled")
    return (
        ""
        if not found
        else f"{_number(found['accuracy'], 'preference')} {_between(found['interval'], 'preference')}"
    )


def _unbeaten(one: dict[str, Any]) -> list[str]:
    """Without an interval, where every draw gives the same, the difference decides."""
    return [
        rule
        for rule, found in one["baselines"].items()
        if (found["interval"][0] if found["interval"] else found["difference"]) <= 0
    ]


def _number(value: float, part: str, sign: str = "") -> str:
    return f"{value:{sign}.2f}" if part in ("outcome", "scores") else f"{100 * value:{sign}.1f}"


def _between(interval: list[float] | None, part: str) -> str:
    if interval is None:
        return "(no interval)"
    return f"[{', '.join(_number(bound, part) for bound in interval)}]"


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.results", description=__doc__)
    parser.add_argument("--json", action="store_true", help="one JSON object on standard output")
    parser.add_argument("--quick", action="store_true", help="few tasks, two folds, one epoch: does it run?")
    parser.add_argument("--case", action="append", choices=CASES, help="only these (all without)")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--threads", type=int, help="for torch; its own choice without")
    parser.add_argument(
        "--out", type=Path, help="keep the JSON here, after every case; what is there is not repeated"
    )
    parser.add_argument(
        "--write", type=Path, help="put the tables into this Markdown file, between its marks"
    )
    arguments = parser.parse_args()
    if arguments.threads:
        torch.set_num_threads(arguments.threads)
    kept = arguments.out and arguments.out.is_file()
    results: dict[str, Any] = json.loads(arguments.out.read_text()) if kept else {}
    try:
        for name in arguments.case or CASES:
            if name in results:
                continue
            results[name] = measure(CASES[name], quick=arguments.quick, seed=arguments.seed, say=_say)
            if arguments.out:
                arguments.out.write_text(json.dumps(results, indent=2) + "\n")
            if not arguments.json:
                print(*_lines(results[name]), sep="\n", flush=True)
        if arguments.write:
            shown = {name: results[name] for name in CASES if name in results}
            write_between(arguments.write, "results", tables(shown))
    except RewardError as error:
        sys.stderr.write(f"{error.message}\n")
        return 2
    if arguments.json:
        print(json.dumps(results))
    return 0


def _say(**event: Any) -> None:
    if event.get("message") or "validation" in event:
        sys.stderr.write(json.dumps(event) + "\n")


def _lines(one: dict[str, Any]) -> Iterator[str]:
    part = one["part"]
    yield f"{one['title']}: {_number(one['value'], part)} {_between(one['interval'], part)} of {one['n']}"
    for rule, difference in one["baselines"].items():
        yield f"    against {rule}: {_rule(difference, part)}"
    yield f"    baselines not beaten: {', '.join(_unbeaten(one)) or 'none'}; {one['seconds']:.0f} s"


if __name__ == "__main__":
    sys.exit(main())
