"""What came back: a policy that lives by length, a release, what is kept; as a researcher sees it."""

import random
from datetime import timedelta
from typing import Any

import pytest
from django.db import transaction
from django.utils import timezone
from playwright.sync_api import Page, expect

from apps.accounts.models import User
from apps.annotation.models import Campaign
from apps.monitoring.measures import reference_from_rows
from apps.monitoring.services import check_endpoints
from apps.retraining.models import RetrainingCycle
from apps.rewards.models import Endpoint, ReleaseRollup, ScoreSample
from apps.rewards.pair_statistics import PairStatistics, ScorePair
from apps.rewards.selectors import open_release
from apps.rewards.services import deploy
from apps.training.models import RewardModel
from tests.monitoring.traffic import exploiting, row, rows, sample
from tests.rewards.conftest import make_model, running_service, serves, wait_until
from tests.workers.engine.fakes import FakeModel

pytestmark = [pytest.mark.browser, pytest.mark.django_db(transaction=True)]


@pytest.fixture
def researcher(campaign: Campaign) -> User:
    return User.objects.get(email="rose@example.org")


def train(model: RewardModel) -> None:
    """Its manifest says what it was trained on."""
    of = reference_from_rows(rows(2000, seed=10_000), "")
    names = (
        "trajectories",
        "reward",
        "tokens",
        "steps",
        "length_correlation",
        "steps_correlation",
        "uncertain",
    )
    model.manifest |= {"training": {name: getattr(of, name) for name in names}}
    model.manifest["reward"] = {"median": 0.5, "std": 2.0}
    model.save()


def scored(endpoint: Endpoint) -> None:
    """Six versions of a policy, the later the more it has found out; what is true of it gets worse."""
    dice, kept = random.Random(0), []
    start = timezone.now() - timedelta(hours=6)
    for version in range(6):
        for number, one in enumerate(exploiting(60, seed=version, share=version / 5)):
            changed = {name: getattr(one, name) for name in ("reward", "tokens", "steps")}
            gold = dice.gauss(-0.2 * version, 0.3)
            named = row(dice, 60 * version + number, policy_version=f"step-{version * 50}", **changed)
            at = start + timedelta(hours=version, seconds=number)
            kept.append(sample(endpoint, named, at=at))
            kept[-1].item = {"text": f"A long answer. {'Indeed. ' * (one.tokens // 30)}"} | {
                "logprob": -5.0 + 2.0 * version,
                "ref_logprob": -5.0,
            }
            kept[-1].result["components"]["truth"] = gold
        ScoreSample.objects.bulk_create(kept)
        kept = []
        check_endpoints()


def test_an_exploit_is_seen_and_closed(
    page: Page, live_server: Any, tools: Any, campaign: Campaign, researcher: User, settings: Any
) -> None:
    project = campaign.project
    with running_service() as service:
        settings.REWARDS_ADDRESS = service.url
        model = make_model(project, service, FakeModel())
        train(model)
        endpoint = deploy(model=model, endpoint_name="reward", project=project, by=None).endpoint
        wait_until(lambda: serves(service, "reward", 1))
        tools.login(page, live_server, researcher)
        base = f"{live_server.url}/p/desk"
        page.goto(f"{base}/alerts/of/reward/")
        expect(page.get_by_text("Sampling is off")).to_be_visible()
        tools.shoot(page, "monitor-none")

        page.get_by_role("link", name="Configure sampling").click()
        page.get_by_text("Sampling settings", exact=True).click()
        page.get_by_label("Sampled share of items, in per cent").fill("20")
        tools.shoot(page, "endpoint-samples")
        page.get_by_role("button", name="Save").click()
        expect(page.get_by_text("20 % of scored items are stored")).to_be_visible()

        endpoint.refresh_from_db()
        scored(endpoint)
        page.goto(f"{base}/")
        expect(page.get_by_text("1 endpoint monitored")).to_be_visible()
        tools.shoot(page, "home-six")
        page.get_by_role("link", name="View alerts").first.click()
        expect(page.get_by_role("link", name="length correlation")).to_be_visible()
        tools.shoot(page, "alerts")
        page.get_by_role("link", name="reward", exact=True).first.click()
        expect(page.locator("#measures svg")).to_be_visible()
        tools.shoot(page, "monitor")

        page.get_by_label("Comparisons", exact=True).fill("0")
        page.get_by_role("button", name="Start retraining").click()
        expect(page.get_by_text("Dataset freeze")).to_be_visible()
        tools.shoot(page, "retraining-cycle")
        page.on("dialog", lambda dialog: dialog.accept())
        page.get_by_role("button", name="Stop").click()
        expect(page.get_by_text("Past retraining cycles")).to_be_visible()

        page.goto(f"{base}/endpoints/reward/")
        expect(page.get_by_text("open:")).to_be_visible()
        page.get_by_role("link", name="length correlation").click()
        expect(page.get_by_role("row")).to_have_count(61)
        tools.shoot(page, "alert")
        page.get_by_label("Resolution note").fill("The policy repeats itself; follow-up campaign begun.")
        page.get_by_role("button", name="Close alert").click()
        expect(page.get_by_text("follow-up campaign begun")).to_be_visible()
        tools.shoot(page, "alert-closed")


def test_the_circle_says_how_long_it_took(
    page: Page, live_server: Any, tools: Any, campaign: Campaign, researcher: User
) -> None:
    project = campaign.project
    manifest = {"aggregation": "value", "heads": {"ensemble": 5}}
    model = RewardModel.objects.create(
        project=project, name="m", version=1, artifact="models/1", manifest=manifest
    )
    endpoint = deploy(model=model, endpoint_name="reward", project=project, by=None).endpoint
    tools.login(page, live_server, researcher)
    page.goto(f"{live_server.url}/p/desk/")
    expect(page.get_by_text("1 endpoint", exact=True)).to_be_visible()
    expect(page.get_by_text("From an annotation to a served reward")).to_have_count(0)
    with transaction.atomic():  # the page, which looks again every few seconds, sees all of them or none
        for days, seconds in ((9, (5, 21, 36, 2)), (2, (4, 18, 17, 2)), (0, (5, 16, 17, 900))):
            at, stage_times = timezone.now() - timedelta(days=days, hours=1), {}
            for stage, took in zip(("freezing", "training", "comparing", "trying"), seconds, strict=True):
                stage_times[stage] = at.isoformat()
                at += timedelta(seconds=took)
            stage_times["done"] = at.isoformat()
            RetrainingCycle.objects.create(
                endpoint=endpoint,
                previous_model=model,
                stage=RetrainingCycle.Stage.DONE,
                stage_times=stage_times,
                started_at=at,
                ended_at=at,
            )
        RetrainingCycle.objects.create(
            endpoint=endpoint, previous_model=model, stage=RetrainingCycle.Stage.TRAINING
        )
    # Drawn while a cycle runs, without a reload.
    expect(page.get_by_text("From an annotation to a served reward")).to_be_visible(timeout=15_000)
    expect(page.get_by_role("status")).to_contain_text("reward: training")
    expect(page.get_by_role("img", name="Release: 900.0 s")).to_be_visible()
    tools.shoot(page, "circle")


def test_a_release(
    page: Page, live_server: Any, tools: Any, campaign: Campaign, researcher: User, settings: Any
) -> None:
    project = campaign.project
    with running_service() as service:
        settings.REWARDS_ADDRESS = service.url
        deploy(
            model=make_model(project, service, FakeModel()), endpoint_name="reward", project=project, by=None
        )
        wait_until(lambda: serves(service, "reward", 1))
        second = make_model(project, service, FakeModel(factor=2.0))
        deploy(model=second, endpoint_name="reward", project=project, by=None)
        wait_until(lambda: serves(service, "reward", 2))
        tools.login(page, live_server, researcher)
        page.goto(f"{live_server.url}/p/desk/endpoints/reward/")
        page.get_by_role("link", name="Release in stages").click()
        page.get_by_label("Canary: it answers a share").check()
        page.get_by_label("Canary share, in per cent").fill("0")
        tools.shoot(page, "release-start")
        page.get_by_role("button", name="Start release").click()
        expect(page.get_by_text("The share of a canary must be above 0")).to_be_visible()
        page.get_by_label("Canary share, in per cent").fill("25")
        page.get_by_role("button", name="Start release").click()
        expect(page.get_by_text("0 of 200 items were scored by both.")).to_be_visible()

        release = open_release(Endpoint.objects.get())
        assert release is not None and release.share == 0.25
        dice, pairs = random.Random(0), PairStatistics()
        for number in range(400):
            reward = dice.gauss(0, 1)
            more = reward + dice.gauss(0, 0.3)
            said = ScorePair(
                release.pk, "canary", "step-9", (reward, more), tokens=dice.randrange(50, 900), steps=4
            )
            pairs.add(said if number % 40 else ScorePair(release.pk, "canary", "step-9", None))
        counted = {name: getattr(pairs, name) for name in PairStatistics.__slots__}
        ReleaseRollup.objects.create(release=release, stage="canary", policy_version="step-9", **counted)
        expect(page.get_by_role("rowheader", name="The uncertain share")).to_be_visible()
        expect(page.get_by_text("Not shown to be inside the limits after 400 items")).to_be_visible()
        tools.shoot(page, "release")
        page.on("dialog", lambda dialog: dialog.accept())
        page.get_by_role("button", name="Promote").click()
        expect(page.get_by_text("Revision 1 is now active.")).to_be_visible()
        tools.shoot(page, "release-ended")
