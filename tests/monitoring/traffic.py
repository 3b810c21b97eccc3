"""Traffic as it might be: rows of scored trajectories, stationary or not, and samples of them in the database."""

import math
import random
from datetime import datetime
from typing import Any

from django.utils import timezone

from apps.monitoring.measures import Reference, SampleRow, reference_from_rows
from apps.rewards.models import Endpoint, EndpointRevision, ScoreSample

MODEL = "desk/politeness@1"
SPEC = {
    "components": [
        {"name": "main", "type": "reward_model", "model": MODEL, "weight": 1.0},
        {
            "name": "truth",
            "type": "verifier",
            "url": "http://127.0.0.1:9/",
            "weight": 0.0,
            "timeout_seconds": 1,
        },
    ],
    "transforms": [{"type": "normalise"}],
}


def row(dice: random.Random, pk: int = 0, **more: Any) -> SampleRow:
    """Rewards that go a little with length, as they do in training."""
    tokens = int(math.exp(dice.gauss(5.5, 0.6)))
    steps = 1 + int(dice.expovariate(0.3))
    said: dict[str, Any] = {
        "pk": pk,
        "policy_version": "",
        "reward": dice.gauss(0.1 * (math.log(tokens) - 5.5), 1.0),
        "tokens": tokens,
        "steps": steps,
        "repetition": max(0.0, dice.gauss(0.04, 0.03)),
        "uncertain": dice.random() < 0.08,
        "outside": dice.random() < 0.006,
    }
    return SampleRow(**(said | more))


def rows(count: int, *, seed: int = 0) -> list[SampleRow]:
    dice = random.Random(seed)
    return [row(dice, number) for number in range(count)]


def trained(count: int = 2000) -> Reference:
    return reference_from_rows(rows(count, seed=10_000), "in training")


def exploiting(count: int, *, seed: int = 0, share: float = 1.0) -> list[SampleRow]:
    """A policy that has found out that length pays: `share` of its trajectories are as long as they are rewarded."""
    dice = random.Random(seed)
    found = []
    for number in range(count):
        if dice.random() < share:
            tokens = int(math.exp(dice.gauss(6.5, 0.8)))
            found.append(
                row(dice, number, tokens=tokens, reward=dice.gauss(1.2 * (math.log(tokens) - 5.5), 0.5))
            )
        else:
            found.append(row(dice, number))
    return found


def sample(
    endpoint: Endpoint, one: SampleRow, *, at: datetime | None = None, run: str = "grpo-1"
) -> ScoreSample:
    """As the reward service writes it down; not saved."""
    flags = ["uncertain"] * one.uncertain + ["out_of_distribution"] * one.outside
    result = {
        "reward": one.reward,
        "raw": 2.0 * one.reward + 0.5,
        "components": {"main": one.reward} | ({} if one.gold is None else {"truth": one.gold}),
        "flags": flags,
        "tokens": one.tokens,
    }
    item: dict[str, Any] = {"text": f"said {one.pk}"}
    if one.kl is not None:
        item |= {"logprob": -10.0 + one.kl, "ref_logprob": -10.0}
    return ScoreSample(
        endpoint=endpoint,
        version=1,
        caller="tsk_1",
        run=run,
        policy_version=one.policy_version,
        item=item,
        result=result,
        reward=one.reward,
        tokens=one.tokens,
        steps=one.steps,
        repetition=one.repetition,
        at=at or timezone.now(),
    )


def deployed(endpoint: Endpoint, model: Any) -> EndpointRevision:
    """Revision 1 with `model` as the only part that counts, and a verifier next to it."""
    revision = EndpointRevision.objects.create(endpoint=endpoint, number=1, spec=SPEC)
    revision.reward_models.add(model)
    Endpoint.objects.filter(pk=endpoint.pk).update(active=revision)
    return revision
