"""What is measured is what it is called, and chance alone raises no alert."""

import math
import random
from dataclasses import replace

import numpy
import pytest

from apps.monitoring.measures import (
    MEASURES,
    Reference,
    SampleRow,
    correlation,
    ks,
    psi,
    reference_from_rows,
    reference_from_training,
    root_kl,
)
from apps.monitoring.presenters import rule_lines
from apps.monitoring.rules import DEFAULTS, Rule, describe_reading, parse_rules, readings, rules_as_json
from tests.monitoring.traffic import exploiting, row, rows, trained
from workers.errors import InvalidRecord

QUANTILES = [place / 100 for place in range(101)]  # of the uniform distribution


def test_psi_by_hand() -> None:
    """All of it in the first decile: 1.0 against 0.1, and nothing in nine others."""
    count = 1000
    smooth = [(count + 0.5) / (count + 5), *[0.5 / (count + 5)] * 9]
    wanted = sum((p - 0.1) * math.log(p / 0.1) for p in smooth)
    assert psi([0.05] * count, QUANTILES) == pytest.approx(wanted)
    assert psi([(place + 0.5) / 1000 for place in range(1000)], QUANTILES) == pytest.approx(0.0, abs=1e-6)


def test_psi_where_deciles_fall_together() -> None:
    steps = [1.0] * 61 + [2.0] * 30 + [3.0] * 10
    same = [1.0] * 605 + [2.0] * 297 + [3.0] * 98
    assert psi(same, steps) < 0.02
    assert psi([3.0] * 100, steps) > 2


def test_ks_is_the_largest_difference() -> None:
    assert ks([0.5] * 10, QUANTILES) == pytest.approx(0.5)
    assert ks([place / 1000 + 0.0005 for place in range(1000)], QUANTILES) < 0.002
    assert ks([2.0, 3.0], QUANTILES) == 1.0
    assert ks([-1.0], QUANTILES) == 1.0
    # against scipy's definition, on a sample: the difference of two distribution functions
    dice = numpy.random.default_rng(3)
    sample = numpy.sort(dice.beta(2, 3, 400))
    below = numpy.arange(1, 401) / 400
    wanted = max(numpy.max(below - sample), numpy.max(sample - (below - 1 / 400)))
    assert ks(sample.tolist(), QUANTILES) == pytest.approx(wanted, abs=1e-9)


def test_a_correlation_that_is_none() -> None:
    assert correlation([1.0, 1.0, 1.0], [1.0, 2.0, 3.0]) is None
    assert correlation([1.0, 2.0, 3.0], [2.0, 4.0, 6.0]) == pytest.approx(1.0)


def test_root_kl() -> None:
    dice = random.Random(0)
    assert root_kl([row(dice, kl=4.0), row(dice, kl=14.0), row(dice)]) == pytest.approx(3.0)
    assert root_kl([row(dice)]) is None
    assert root_kl([row(dice, kl=-1.0)]) == 0.0


def looked(window: list[SampleRow], reference: Reference | None = None) -> dict[str, bool]:
    """By rule, whether an alert is raised."""
    found = readings(DEFAULTS, window, reference or trained())
    rules = {rule.name: rule for rule in DEFAULTS}
    return {
        name: MEASURES[rules[name].measure].passes(reading, rules[name].above)
        for name, reading in found.items()
    }


def test_a_policy_that_lives_by_length_is_noticed() -> None:
    broken = looked(exploiting(300))
    assert broken["length correlation"] and broken["length drift"]
    assert not broken["high uncertainty"] and not broken["repetition"]


@pytest.mark.parametrize(
    ("rule", "changed"),
    [
        ("reward drift", {"reward": 4.0}),
        ("length drift", {"tokens": 5000}),
        ("high uncertainty", {"uncertain": True}),
        ("out of distribution", {"outside": True}),
        ("repetition", {"repetition": 0.6}),
    ],
)
def test_each_rule_notices_what_it_is_for(rule: str, changed: dict) -> None:
    dice = random.Random(1)
    window = [row(dice, number, **(changed if number % 2 else {})) for number in range(300)]
    assert looked(window)[rule]


def test_steps_that_are_rewarded() -> None:
    dice = random.Random(1)
    window = []
    for number in range(300):
        steps = 1 + dice.randrange(30)
        window.append(row(dice, number, steps=steps, reward=math.log(steps) + dice.gauss(0, 0.3)))
    assert looked(window)["step count correlation"]


def test_reward_without_gold() -> None:
    """The reward rises and what the verifier says falls; where both rise there is no alert."""

    def window(sign: float) -> list[SampleRow]:
        dice = random.Random(2)
        return [
            row(
                dice,
                number,
                reward=dice.gauss(3 * number / 300, 1.0),
                gold=dice.gauss(sign * 3 * number / 300, 1.0),
            )
            for number in range(300)
        ]

    def gold(some: list[SampleRow]) -> bool:
        reading = MEASURES["gold"].measure(some, trained())
        assert reading is not None
        return MEASURES["gold"].passes(reading, 0.5)

    assert gold(window(-1.0))
    assert not gold(window(1.0))
    assert MEASURES["gold"].measure(rows(300), trained()) is None  # nothing was said of them


def test_people_disagree() -> None:
    """Ten, then forty comparisons; people contradict the reward no more often than held-out ones, or nearly always."""

    def window(judged: int, wrong: int) -> list[SampleRow]:
        said = [(1, int(number < wrong)) for number in range(judged)] + [(0, 0)] * (300 - judged)
        return [replace(one, judged=n, wrong=w) for one, (n, w) in zip(rows(300), said, strict=True)]

    def passes(judged: int, wrong: int) -> bool | None:
        reading = MEASURES["disagreement"].measure(window(judged, wrong), replace(trained(), error=0.25))
        return None if reading is None else MEASURES["disagreement"].passes(reading, 0.1)

    assert passes(19, 19) is None
    assert passes(40, 10) is False and passes(40, 24) is False
    assert passes(40, 38) is True
    assert MEASURES["disagreement"].measure(window(40, 38), trained()) is None  # nothing to hold it against
    reading = MEASURES["disagreement"].measure(window(40, 38), replace(trained(), error=0.25))
    assert reading is not None and (reading.value, reading.baseline, reading.count) == (0.95, 0.25, 40)
    rule = next(default for default in DEFAULTS if default.measure == "disagreement")
    said = describe_reading(rule, reading, of="in training", run="grpo-1", policy_version="")
    assert said.startswith(
        "The share of fresh comparisons in which people preferred what has less reward is 95.0 %"
    )
    assert "over the newest 40 comparisons of run grpo-1, 25.0 % in training" in said


def test_few_are_not_judged() -> None:
    assert readings(DEFAULTS, exploiting(99), trained()) == {}


@pytest.mark.parametrize("seed", range(6))
def test_traffic_that_stays_as_it_is_raises_nothing(seed: int) -> None:
    """Two weeks of a look each hour, each at a window that slid on by a third; see benchmarks.monitors for more."""
    reference, stream = trained(), rows(100 * 24, seed=seed)
    for end in range(300, len(stream), 100):
        assert not any(looked(stream[end - 300 : end], reference).values())


def test_a_reference_of_rows_or_of_a_manifest() -> None:
    of = reference_from_rows(rows(500), "at first")
    assert (of.trajectories, len(of.reward), len(of.tokens)) == (500, 101, 101)
    assert of.uncertain == pytest.approx(0.08, abs=0.04)
    said = {"trajectories": 9, "reward": [0.0, 1.0], "tokens": [1.0, 2.0], "steps": [1.0, 1.0]}
    manifest = reference_from_training(said | {"length_correlation": 0.3}, "in training")
    assert (manifest.length_correlation, manifest.uncertain, manifest.repetition) == (0.3, None, None)
    # What a model's training does not tell is not measured, or counts from nothing.
    assert MEASURES["repetition"].measure(rows(300), manifest) is None


def test_rules_are_data() -> None:
    assert parse_rules(rules_as_json(DEFAULTS)) == DEFAULTS
    for bad, pointer in [
        ([{"name": "a", "measure": "nose", "above": 1}], "/rules/0/measure"),
        ([{"name": "a", "measure": "uncertain", "above": -1}], "/rules/0/above"),
        ([{"name": "a", "measure": "uncertain", "above": 1, "least": 400}], "/rules/0/least"),
        ([{"name": "a", "measure": "uncertain", "above": 1}] * 2, "/rules/1/name"),
        ([{"name": "a", "measure": "uncertain", "above": 1, "turns": True}], "/rules/0/asks"),
        ([{"name": "a", "measure": "uncertain", "above": 1, "asks": -1}], "/rules/0/asks"),
        ({"a": 1}, "/rules"),
    ]:
        with pytest.raises(InvalidRecord) as raised:
            parse_rules(bad)
        assert raised.value.pointer == pointer


def test_a_sentence() -> None:
    rule = Rule("length correlation", "length_correlation", 0.25)
    reading = readings((rule,), exploiting(300), trained())[rule.name]
    said = describe_reading(rule, reading, of="in training", run="grpo-1", policy_version="300")
    assert said.startswith("The correlation of reward with length is 0.")
    assert "of run grpo-1, up to policy version 300, 0." in said
    lines = {line.rule.measure: line.limit for line in rule_lines(DEFAULTS, None, ())}
    assert lines["steps_correlation"] == "up to 0.25 in either direction"
    assert lines["uncertain"] == "up to 15.0 % more"
    assert said.endswith("in training; up to 0.25 in either direction is allowed.")


@pytest.mark.parametrize(
    ("trained_at", "now", "alert"),
    [(-0.4, 0.5, True), (0.4, -0.5, True), (0.0, -0.5, True), (0.4, 0.0, False), (-0.5, -0.5, False)],
)
def test_the_correlation_with_length_has_a_sign(trained_at: float, now: float, alert: bool) -> None:
    """Of a reward that fell with length in training, one that grows with it is as bad as of one that did not care."""
    dice = random.Random(0)

    def correlated(rho: float, count: int) -> list[SampleRow]:
        found = []
        for pk in range(count):
            length = dice.gauss(0, 1)
            reward = rho * length + math.sqrt(1 - rho * rho) * dice.gauss(0, 1)
            found.append(SampleRow(pk, "", reward, int(math.exp(6 + 0.7 * length)), 3))
        return found

    reference = reference_from_rows(correlated(trained_at, 2000), "in training")
    reading = MEASURES["length_correlation"].measure(correlated(now, 300), reference)
    assert reading is not None
    assert reading.value == pytest.approx(now, abs=0.12)
    assert MEASURES["length_correlation"].passes(reading, 0.1) is alert
