"""Those of the checks that need no training: simulated people, releases, samples and texts."""

import random
from collections.abc import Callable
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
import torch
from torch.nn import functional

from benchmarks import interval_coverage, releases
from workers.evaluate.annotators import annotator_report
from workers.evaluate.preference import Prediction, preference_report
from workers.objectives.bradley_terry import davidson_log_probabilities
from workers.schema import Part, PreferenceRecord, Step, Task, Trajectory
from workers.schema.contamination import find_contamination


@dataclass(frozen=True)
class Check:
    """holds: whether `now` is what is wanted."""

    what: str
    before: str
    now: str
    wanted: str
    holds: bool

    def as_dict(self) -> dict[str, Any]:
        return asdict(self)


def simulated_checks() -> dict[int, Callable[[bool], Check]]:
    return {
        2: person_and_model,
        3: bad_releases,
        4: few_tasks,
        10: ties,
        11: copied_prompts,
    }


def dialogue(task: str, prompt: str, answer: str) -> Trajectory:
    steps = (
        Step(source="user", message=(Part(text=prompt),)),
        Step(source="agent", message=(Part(text=answer),)),
    )
    return Trajectory(steps=steps, task=Task(id=task))


def person_and_model(quick: bool) -> Check:
    """People who are right in 85 % and undecided in 20 %, and a model that makes the same errors."""
    dice, found = np.random.default_rng(0), []
    for number in range(60 if quick else 2000):
        a, b = (dialogue(f"task-{number}", f"Do {number}.", f"{number}, {side}") for side in "xy")
        best_is_a = bool(dice.random() < 0.5)
        model_is_right = bool(dice.random() < 0.85)
        scores = (1.0, 0.0) if best_is_a == model_is_right else (0.0, 1.0)
        for annotator in "pqr":
            is_right = bool(dice.random() < 0.85)
            choice = "tie" if dice.random() < 0.2 else "a" if best_is_a == is_right else "b"
            record = PreferenceRecord(
                a=a, b=b, choice=choice, annotator=annotator, origin="person", item=str(number)
            )  # type: ignore[arg-type]
            found.append(Prediction(record, scores, (5, 5), (1, 1)))
    people = annotator_report(found)
    model = preference_report(found, [])
    assert people is not None and model is not None
    low, high = people["difference_interval"]
    return Check(
        "A person (right in 85 %, 20 % ties) and a model that errs as often: accuracy of each in the report",
        "64.0 % and 84.9 % (of a perfect model), on different answers",
        f"{100 * people['leave_one_out']:.1f} % and {100 * people['model']:.1f} % on the same {people['n']:,} answers; "
        f"difference {100 * people['difference']:+.1f} [{100 * low:.1f}, {100 * high:.1f}]",
        "equal: the interval of the difference contains 0",
        low <= 0 <= high,
    )


def bad_releases(quick: bool) -> Check:
    found = releases.measure(10 if quick else 300)
    bad = {name: shares for name, shares in found.items() if releases.CANDIDATES[name].is_bad}
    good = {name: shares for name, shares in found.items() if not releases.CANDIDATES[name].is_bad}
    passes = max(shares["passes"] for shares in bad.values())
    rolled_back = max(shares["fails"] for shares in good.values())
    undecided = max(shares["waits"] for shares in good.values())
    return Check(
        f"Releases of {len(bad)} bad and {len(good)} equal kinds, the worst kind of each",
        "bad pass 30 % (2 % fail), 100 % (length -0.6 to +0.6), 89 % (unrelated rewards)",
        f"bad pass {passes:.1%}; equal rolled back {rolled_back:.1%}, undecided after 5,000 items {undecided:.1%}",
        "at most 5 %; at most 1 %, at most 20 %",
        passes <= 0.05 and rolled_back <= 0.01 and undecided <= 0.2,
    )


def few_tasks(quick: bool) -> Check:
    repeats = 50 if quick else 600
    covered = {
        tasks: min(
            interval_coverage.accuracy_coverage(accuracy, tasks, repeats)[0]
            for accuracy in interval_coverage.ACCURACIES
        )
        for tasks in (3, 5, 10, 20)
    }
    return Check(
        "Coverage of 95 % intervals with 3, 5, 10 and 20 tasks, the lowest over four accuracies",
        "53, 74, 84 % at 3, 5, 10",
        ", ".join(f"{100 * share:.0f}" for share in covered.values()) + " %",
        "93 % and more from 10 tasks on",
        covered[10] >= 0.93 and covered[20] >= 0.93,
    )


def ties(quick: bool) -> Check:
    """Rewards of 60 trajectories from choices of all four kinds, drawn from Davidson's model with both-bad."""
    one = torch.ones(()).double()
    found = davidson_log_probabilities(one, 0 * one, one, 0 * one)
    odds, total = float(found[0] - found[1]), float(found.exp().sum())
    generator = torch.Generator().manual_seed(0)
    rewards = torch.randn(60, generator=generator, dtype=torch.float64) * 1.5
    count = 2_000 if quick else 60_000
    a = torch.randint(60, (count,), generator=generator)
    b = (a + torch.randint(1, 60, (count,), generator=generator)) % 60
    truth = davidson_log_probabilities(rewards[a], rewards[b], 0.5 * one, -0.5 * one)
    choice = torch.multinomial(truth.exp().T, 1, generator=generator).squeeze(1)
    estimate, log_nu, threshold = (
        torch.zeros(size, dtype=torch.float64, requires_grad=True) for size in (60, (), ())
    )
    parameters = [estimate, log_nu, threshold]
    optimiser = torch.optim.LBFGS(parameters, max_iter=200, line_search_fn="strong_wolfe")

    def closure() -> torch.Tensor:
        optimiser.zero_grad()
        model = davidson_log_probabilities(estimate[a], estimate[b], log_nu, threshold)
        loss = functional.nll_loss(model.T, choice)
        loss.backward()  # type: ignore[no-untyped-call]
        return loss

    optimiser.step(closure)  # type: ignore[no-untyped-call]
    centred, true = estimate.detach() - estimate.detach().mean(), rewards - rewards.mean()
    slope = float(centred @ true / (true @ true))
    return Check(
        f"Ties and both-bad: log odds at a difference of 1; sum of the four probabilities; slope of rewards that are "
        f"estimated from {count:,} simulated choices",
        "1.43 (Rao-Kupper); not 1; below 1",
        f"{odds:.2f} (Davidson); {total:.3f}; {slope:.2f}",
        "1; 1; 0.97 to 1.03",
        abs(odds - 1) < 1e-9 and abs(total - 1) < 1e-9 and 0.97 <= slope <= 1.03,
    )


def copied_prompts(quick: bool) -> Check:
    dice, words = random.Random(0), [f"w{number}" for number in range(400)]

    def pair(task: str, prompt: str) -> PreferenceRecord:
        a, b = (dialogue(task, prompt, " ".join(dice.choices(words, k=60))) for _ in "ab")
        return PreferenceRecord(a=a, b=b, choice="a", annotator="p", origin="person")

    prompts = [" ".join(dice.choices(words, k=80)) for _ in range(50)]
    training = [pair(f"a{number}", prompt) for number, prompt in enumerate(prompts)]
    held_out = [pair(f"b{number}", f"{prompt} please") for number, prompt in enumerate(prompts)]
    found = find_contamination(training, held_out)
    return Check(
        "Held-out prompts that are a training prompt and ' please': found of 50",
        "0",
        str(found["near_tasks"]),
        "50",
        found["near_tasks"] == 50,
    )
