"""How likely an action breaks a policy, from broken checks and a model of violations together.

    python -m workers.evaluate.guard_weights RUN --checks CHECKS.yaml [--without-model]

RUN: the directory of a finished training of the objective `violation`. The weights are fitted to its validation split,
which the model has not learnt from, and compared with the verdict of any broken check on its test split. Prints
{guard, recommended, ...}; `guard` are settings of an endpoint's spec.

A Markov logic network with a formula for each check ("broken, so the action violates") and one for the model's
log-odds, given what is observed, is a logistic regression (Richardson and Domingos 2006); ShieldAgent (arXiv
2503.22738) weighs rules so. No weight is below 0: a broken check makes no action safer.
"""

import argparse
import json
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from workers.engine.rules.policy_checks import violations_of
from workers.evaluate.bootstrap import statistic_interval, task_count
from workers.evaluate.violations import Risks, alarms
from workers.models import ModelScore
from workers.objectives.violation import first_violation
from workers.schema import FeedbackRecord, ScoreInput, StepLabelRecord
from workers.schema.policy_checks import PolicyCheck, parse_checks
from workers.schema.task_folds import task_folds

Floats = NDArray[np.float64]
PENALTIES = (0.01, 0.1, 1.0, 10.0)
_FOLDS = 5
_LEAST_VIOLATING = 5


@dataclass(frozen=True, slots=True)
class ActionEvidence:
    """Of one trajectory: by agent step, the checks that the step breaks, and the risk of the prefix that ends with it
    (the model's log-odds that a violation comes; 0 without a model). violation: the first step that violates."""

    task: str
    broken: tuple[frozenset[str], ...]
    risks: tuple[float, ...]
    violation: int | None

    @property
    def actions(self) -> int:
        """Up to the first violation: what comes after it is not known to be one."""
        return len(self.broken) if self.violation is None else self.violation + 1


@dataclass(frozen=True, slots=True)
class GuardWeights:
    """Of log-odds that an action violates: intercept + slope * risk + the sum of the weights of broken checks."""

    intercept: float
    slope: float
    checks: dict[str, float]

    def odds(self, evidence: ActionEvidence) -> list[float]:
        """By agent step."""
        return [
            self.intercept + self.slope * risk + sum(self.checks.get(name, 0.0) for name in broken)
            for broken, risk in zip(evidence.broken, evidence.risks, strict=True)
        ]


def evidence_of(
    records: Sequence[FeedbackRecord], checks: Sequence[PolicyCheck], scores: Sequence[ModelScore] | None
) -> list[ActionEvidence]:
    """Of the step labels whose first violation is known. scores: of each record; None without a model."""
    found = []
    for place, record in enumerate(records):
        if not isinstance(record, StepLabelRecord):
            continue
        is_known, violation = first_violation(record)
        steps = len(record.trajectory.agent_steps)
        if not is_known or not steps:
            continue
        broken: list[set[str]] = [set() for _ in range(steps)]
        for each in violations_of(checks, ScoreInput(content=record.trajectory)):
            broken[each.agent_step].add(each.check.name)
        risks = (0.0,) * steps if scores is None else tuple(-value for value in scores[place].values)
        task = record.trajectory.task.id
        found.append(ActionEvidence(task, tuple(map(frozenset, broken)), risks, violation))
    return found


def fit_guard_weights(
    known: Sequence[ActionEvidence], checks: Sequence[str], *, has_model: bool
) -> GuardWeights:
    """With the ridge penalty of the lowest log loss over folds of tasks. Raises ValueError for too few violations."""
    if sum(each.violation is not None for each in known) < _LEAST_VIOLATING:
        raise ValueError(f"weights need at least {_LEAST_VIOLATING} trajectories with a violation")
    columns, labels, tasks = _actions(known, checks)
    if not has_model:
        columns[:, 0] = 0
    fold = np.array(task_folds(tasks, _FOLDS))
    losses = []
    for penalty in PENALTIES:
        odds = np.zeros(len(labels))
        for each in set(fold.tolist()):
            weights = _fit(columns[fold != each], labels[fold != each], penalty)
            odds[fold == each] = columns[fold == each] @ weights[1:] + weights[0]
        losses.append(_log_loss(odds, labels))
    weights = _fit(columns, labels, PENALTIES[int(np.argmin(losses))])
    by_check = dict(zip(checks, weights[2:].tolist(), strict=True))
    return GuardWeights(float(weights[0]), float(weights[1]), by_check)


def compare_with_any_check(
    weights: GuardWeights, known: Sequence[ActionEvidence], test: Sequence[ActionEvidence]
) -> dict[str, Any]:
    """{threshold, any_check, model, combined, difference, interval, recommended, log_loss, base_log_loss, n, tasks}.

    Of trajectories: an alarm at the violating step or before it is a hit, one where no violation is a false alarm.
    Thresholds are those of the best F1 on `known`. recommended: `combined` only where its F1 is shown to be higher than
    that of any broken check on `test`, by an interval over tasks.
    """
    risks = {
        "any_check": [[float(bool(broken)) for broken in each.broken] for each in test],
        "model": [list(each.risks) for each in test],
        "combined": [weights.odds(each) for each in test],
    }
    thresholds = {
        "any_check": 0.5,
        "model": best_f1_threshold([each.risks for each in known], known),
        "combined": best_f1_threshold([weights.odds(each) for each in known], known),
    }
    found = {name: alarms(steps, thresholds[name]) for name, steps in risks.items()}
    pooled = [each.task for each in test]

    def gain(places: NDArray[np.int64]) -> float:
        chosen = [test[place] for place in places]
        mine, other = (
            _f1([found[name][place] for place in places], chosen) for name in ("combined", "any_check")
        )
        return mine - other

    interval = statistic_interval(gain, pooled)
    columns, labels, _ = _actions(test, list(weights.checks))
    odds = columns @ np.array([weights.slope, *weights.checks.values()]) + weights.intercept
    share = float(_actions(known, [])[1].mean())
    return {
        "threshold": float(1 / (1 + np.exp(-thresholds["combined"]))),
        **{name: _summary(alarm, test) for name, alarm in found.items()},
        "difference": gain(np.arange(len(test))),
        "interval": interval,
        "recommended": "combined" if interval is not None and interval[0] > 0 else "any_check",
        "log_loss": _log_loss(odds, labels),
        "base_log_loss": _log_loss(np.full(len(labels), np.log(share / (1 - share))), labels),
        "n": len(test),
        "tasks": task_count(pooled),
    }


def best_f1_threshold(risks: Risks, known: Sequence[ActionEvidence]) -> float:
    """Halfway between two risks, of at most 200."""
    every = np.unique([risk for steps in risks for risk in steps])
    if len(every) > 200:
        every = np.quantile(every, np.linspace(0, 1, 200))
    middles = [*((every[:-1] + every[1:]) / 2), float(every[-1]) + 1e-6]
    return float(max(middles, key=lambda threshold: _f1(alarms(risks, threshold), known)))


def _summary(alarm: Sequence[int | None], test: Sequence[ActionEvidence]) -> dict[str, float]:
    clean = [step is not None for step, each in zip(alarm, test, strict=True) if each.violation is None]
    hits = [
        step is not None and step <= each.violation
        for step, each in zip(alarm, test, strict=True)
        if each.violation is not None
    ]
    return {
        "f1": _f1(alarm, test),
        "detected": float(np.mean(hits)) if hits else 0.0,
        "false_alarms": 100 * float(np.mean(clean)) if clean else 0.0,
    }


def _f1(alarm: Sequence[int | None], test: Sequence[ActionEvidence]) -> float:
    hits = sum(
        step is not None and each.violation is not None and step <= each.violation
        for step, each in zip(alarm, test, strict=True)
    )
    wrong = sum(step is not None and each.violation is None for step, each in zip(alarm, test, strict=True))
    total = sum(each.violation is not None for each in test) + hits + wrong
    return 2 * hits / total if total else 0.0


def _actions(known: Sequence[ActionEvidence], checks: Sequence[str]) -> tuple[Floats, Floats, list[str]]:
    """[actions, 1 + checks]: the risk, and 1 where the check is broken; whether each violates; tasks."""
    rows, labels, tasks = [], [], []
    for each in known:
        for step in range(each.actions):
            rows.append([each.risks[step], *(float(name in each.broken[step]) for name in checks)])
            labels.append(float(step == each.violation))
            tasks.append(each.task)
    return np.array(rows).reshape(len(rows), 1 + len(checks)), np.array(labels), tasks


def _fit(columns: Floats, labels: Floats, penalty: float) -> Floats:
    """[1 + columns]: intercept and weights, these at least 0, of the lowest log loss and penalty."""
    from scipy.optimize import minimize

    def loss(weights: Floats) -> tuple[float, Floats]:
        odds = columns @ weights[1:] + weights[0]
        error = 1 / (1 + np.exp(-np.clip(odds, -500, 500))) - labels
        value = float(np.sum(np.logaddexp(0, odds) - labels * odds) + penalty / 2 * np.sum(weights[1:] ** 2))
        return value, np.concatenate([[error.sum()], columns.T @ error + penalty * weights[1:]])

    bounds = [(None, None), *[(0, None)] * columns.shape[1]]
    found: Floats = minimize(
        loss, np.zeros(1 + columns.shape[1]), jac=True, method="L-BFGS-B", bounds=bounds
    ).x
    return found


def _log_loss(odds: Floats, labels: Floats) -> float:
    return float(np.mean(np.logaddexp(0, odds) - labels * odds))


def guard_settings(weights: GuardWeights, threshold: float, component: str | None) -> dict[str, Any]:
    """For an endpoint's spec; ask_above is to be chosen again where asking too often costs more than missing."""
    settings: dict[str, Any] = {
        "ask_above": min(max(threshold, 1e-6), 1 - 1e-6),
        "intercept": weights.intercept,
        "check_weights": weights.checks,
    }
    return settings if component is None else settings | {"component": component, "slope": weights.slope}


def main() -> None:
    from workers.evaluate.predictions import score_records
    from workers.models import load
    from workers.schema.storage import read_split

    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument("run", type=Path, help="directory of a finished training")
    parser.add_argument("--checks", type=Path, required=True, help="YAML or JSON")
    parser.add_argument("--without-model", action="store_true", help="weigh the checks alone")
    options = parser.parse_args()
    checks = parse_checks(options.checks.read_text(encoding="utf-8"))
    model = None if options.without_model else load(options.run / "model", device="cpu")
    if model is not None:
        objective = model.manifest["objective"]
        if objective != "violation":
            parser.error(f"the run trained {objective!r}; train `violation`, or leave the model out")
    evidence = []
    for split in ("validation", "test"):
        records = [record for record in read_split(options.run, split) if isinstance(record, StepLabelRecord)]
        scores = None if model is None else [each.scores[0] for each in score_records(model, records)]
        evidence.append(evidence_of(records, checks, scores))
    known, test = evidence
    try:
        weights = fit_guard_weights(known, [check.name for check in checks], has_model=model is not None)
    except ValueError as error:
        parser.error(f"{error}; the validation split has too few. Label more, and freeze again.")
    found = compare_with_any_check(weights, known, test)
    component = None if model is None else "violations"
    guard = guard_settings(weights, found["threshold"], component)
    sys.stdout.write(json.dumps({"guard": guard, **found}, indent=2) + "\n")


if __name__ == "__main__":
    main()
