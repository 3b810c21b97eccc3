"""The circle turns: a policy finds out that length pays, the monitors notice before what it does gets worse, people
judge what is behind it, a new model is trained, tried and promoted by rule, and length no longer pays. The trainer's
client sees no error on the way. Everything is real but the policy and the people, who are scripted.

A cycle without the policy and the monitors is in test_cycle.py.
"""

import asyncio
import random
import statistics
from collections.abc import Iterator
from typing import Any

import httpx
import pytest
from touchstone_client import RewardClient

from apps.accounts.models import Project, Role, Scope
from apps.accounts.services import create_api_key
from apps.annotation.models import Campaign
from apps.annotation.services import annotator_for, assign_next_item
from apps.monitoring.models import Alert
from apps.monitoring.services import check_endpoints
from apps.retraining import cycle as cycle_module
from apps.retraining.cycle import advance_cycles, start_cycle
from apps.retraining.follow_up import follow_up_alert
from apps.retraining.models import RetrainingCycle
from apps.rewards.models import Endpoint
from apps.rewards.services import advance_releases, deploy, keep_samples
from apps.rewards.serving.state import StoredModels
from apps.trajectories.selectors import load_trajectories
from tests.annotation.rows import submit
from tests.datasets.feedback import freeze, import_pairs
from tests.factories import make_member
from tests.retraining.test_cycle import trained, work
from tests.rewards.conftest import Service, running_service, serves, wait_until

pytestmark = [pytest.mark.long, pytest.mark.django_db(transaction=True)]

THINGS = [
    *(
        "password",
        "invoice",
        "parcel",
        "account",
        "printer",
        "router",
        "ticket",
        "booking",
        "refund",
        "address",
    ),
    *(
        "contract",
        "warranty",
        "calendar",
        "camera",
        "battery",
        "keyboard",
        "license",
        "backup",
        "voucher",
        "seat",
    ),
]
WAYS = ["How do I change my {}?", "My {} is wrong, what now?", "Please help me with the {}."]
BASES = {
    1.0: "Open the settings, choose {}, press reset and confirm by mail.",
    0.5: "It is somewhere in the settings of the {}.",
    0.0: "No idea about the {}.",
}
FILLER = "I hope this helps you a great deal, and please feel free to ask me anything else at any time."
WORSE_BY = 0.1  # truly, with each time that it is said


@pytest.fixture
def service(transactional_db: None) -> Iterator[Service]:
    with running_service() as running:
        yield running


class Answer:
    """What the policy said, and how good that truly is."""

    def __init__(self, prompt: str, thing: str, base: float, filler: int) -> None:
        self.prompt = prompt
        self.text = " ".join([BASES[base].format(thing), *[FILLER] * filler])
        self.truth = base - WORSE_BY * filler

    @property
    def item(self) -> dict[str, Any]:
        return {"prompt": self.prompt, "response": self.text}


def truth_of(text: str) -> float:
    base = next(value for value, form in BASES.items() if text.startswith(form.split("{")[0]))
    return base - WORSE_BY * text.count(FILLER)


def prompt_of(number: int) -> tuple[str, str]:
    thing = THINGS[number % len(THINGS)]
    return WAYS[number // len(THINGS) % len(WAYS)].format(thing), thing


def first_feedback(dice: random.Random) -> list[dict[str, Any]]:
    """What people were first asked: no one had said a polite sentence more than four times, and they liked it."""
    found = []
    for number in range(60):
        prompt, thing = prompt_of(number)
        worse, better = sorted(dice.choices(list(BASES), k=2))
        a, b = Answer(prompt, thing, better, dice.randint(1, 4)), Answer(prompt, thing, worse, 0)
        found.append({"task": {"id": prompt}, "a": a.item, "b": b.item, "choice": "a", "annotator": "first"})
    return found


class PolicySummary:
    """Four answers to a prompt, each the best of some by the reward it is given, of those it has found out about."""

    def __init__(self, http: httpx.Client, dice: random.Random) -> None:
        self.http = http
        self.dice = dice
        self.asked = 0

    def step(self, most_filler: int, *, greedy: float, prompts: int, version: str) -> list[Answer]:
        said: list[Answer] = []
        for _ in range(prompts):
            prompt, thing = prompt_of(self.asked)
            self.asked += 1
            group = []
            for _ in range(4):
                some = [
                    Answer(prompt, thing, self.dice.choice(list(BASES)), self.dice.randint(0, most_filler))
                    for _ in range(6 if self.dice.random() < greedy else 1)
                ]
                group.append(max(some, key=lambda one: len(one.text)) if len(some) > 1 else some[0])
            body = {"inputs": [member.item for member in group], "run": "grpo-1", "policy_version": version}
            reply = self.http.post("/api/v1/rewards/reward/score", json=body)
            assert reply.status_code == 200, reply.text
            said += group
        return said


def people(project: Project, campaign: Campaign) -> None:
    annotator = make_member(project, "ann-circle@example.org", Role.ANNOTATOR)
    annotator_row = annotator_for(project=project, user=annotator)
    while held := assign_next_item(campaign=campaign, annotator=annotator_row):
        keys = [place.trajectory_id for place in held.item.places.order_by("position")]
        found = load_trajectories(keys)
        first, second = (truth_of(found[key].steps[-1].text) for key in keys)
        submit(held, annotator, "a" if first > second else "b" if second > first else "tie")


def flushed(service: Any) -> None:
    wait_until(lambda: not service.state.shadow._waiting)
    asyncio.run_coroutine_threadsafe(service.state.usage.flush(), service.loop).result(20)


def test_length_no_longer_pays(
    project: Project, service: Any, own_home: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Limits so wide that 16 held-out comparisons and some 100 items show that they are met."""
    monkeypatch.setattr(cycle_module, "EXCLUDED_ACCURACY_LOSS", 0.5)
    monkeypatch.setattr(cycle_module, "MIN_TASKS", 2)
    shares = dict.fromkeys(("failed", "uncertain", "out_of_distribution", "length"), 1.0)
    monkeypatch.setattr(cycle_module, "RELEASE_RULES", {"pairs": 60, "agreement": -1.0} | shares)
    dice = random.Random(4)
    service.state.deployments._load = StoredModels()
    import_pairs(project, first_feedback(dice))
    model = trained(project, freeze(project))
    _, key = create_api_key(project=project, scopes=[Scope.REWARD])  # the service knows it with the endpoint
    endpoint = deploy(model=model, endpoint_name="reward", project=project, by=None).endpoint
    keep_samples(endpoint=endpoint, share=1.0, by=None)
    wait_until(lambda: serves(service, "reward", 1), 60)
    wait_until(lambda: service.deployed["reward"].info.sample_share == 1.0)

    headers = {"Authorization": f"Bearer {key}"}
    with (
        RewardClient(service.url, "reward", key) as client,
        httpx.Client(base_url=service.url, headers=headers, trust_env=False, timeout=60) as http,
    ):

        def pays(filler: int) -> float:
            """By how much, in the mean: the same good answer with so much filler rather than without."""
            long, short = (
                [Answer(*prompt_of(number), 1.0, many).item for number in range(20)] for many in (filler, 0)
            )
            return statistics.fmean(client.score(long).rewards) - statistics.fmean(
                client.score(short).rewards
            )

        assert pays(6) > 0.2  # the fault that is to be found
        policy = PolicySummary(http, dice)
        truth = statistics.fmean(step.truth for step in policy.step(1, greedy=0.0, prompts=30, version="0"))
        now = truth
        for step in range(1, 8):
            answers = policy.step(1 + step, greedy=min(1.0, 0.2 * step), prompts=30, version=str(step))
            now = statistics.fmean(answer.truth for answer in answers)
            flushed(service)
            check_endpoints()
            if Alert.objects.exists():
                break
        else:
            pytest.fail("nobody noticed")
        assert now > 0.9 * truth, f"noticed at step {step}, when it was {now:.2f} from {truth:.2f}"

        researcher = make_member(project, "rose-circle@example.org", Role.RESEARCHER)
        alert = Alert.objects.order_by("pk").first()
        assert alert is not None
        policy.step(8, greedy=0.5, prompts=60, version="later")  # it goes on until someone comes
        flushed(service)
        check_endpoints()
        asked = follow_up_alert(alert=alert, campaign=None, count=60, by=researcher)
        people(project, asked.campaign)
        cycle = start_cycle(
            endpoint=endpoint,
            by=researcher,
            follow_up=asked,
            heads_only=False,
            staged_release=True,
            automatic=True,
        )
        for _ in range(60):
            advance_cycles()
            work()
            advance_releases()
            cycle.refresh_from_db()
            if cycle.stage == RetrainingCycle.Stage.TRYING:
                policy.step(6, greedy=0.3, prompts=10, version="last")
                flushed(service)
            if not cycle.is_open:
                break
        assert cycle.stage == RetrainingCycle.Stage.DONE, cycle.reason
        wait_until(lambda: serves(service, "reward", 2), 60)
        assert pays(6) < 0
        assert Endpoint.objects.get().active.number == 2  # type: ignore[union-attr]
