"""Looking at what endpoints sampled: alerts, once, with the trajectories behind them; pages; rules."""

import json
import random
from datetime import timedelta
from importlib import import_module
from typing import Any

import pytest
from django.apps import apps
from django.test import Client
from django.urls import reverse
from django.utils import timezone

from apps.accounts.models import Project, Role
from apps.accounts.services import create_project, create_user, set_member
from apps.core.errors import Conflict
from apps.monitoring.measures import SampleRow
from apps.monitoring.models import Alert, Monitor, Reading
from apps.monitoring.rules import DEFAULTS
from apps.monitoring.services import BEHIND, check_endpoints, close_alert, delete_old_readings, save_rules
from apps.retraining.models import RetrainingCycle
from apps.rewards.models import Endpoint, ScoreSample
from apps.training.models import RewardModel
from apps.webhooks.models import Delivery, Webhook
from tests.monitoring.traffic import deployed, exploiting, row, rows, sample, trained


@pytest.fixture
def desk(db: None) -> Project:
    return create_project(slug="desk")


def manifest() -> dict[str, Any]:
    of = trained()
    names = ("reward", "tokens", "steps", "length_correlation", "steps_correlation", "uncertain")
    said = {name: getattr(of, name) for name in names}
    return {"reward": {"median": 0.5, "std": 2.0}, "training": {"trajectories": 2000, **said}}


@pytest.fixture
def endpoint(desk: Project) -> Endpoint:
    model = RewardModel.objects.create(
        project=desk, name="politeness", version=1, artifact="a", manifest=manifest()
    )
    endpoint = Endpoint.objects.create(project=desk, name="reward", sample_share=1.0)
    deployed(endpoint, model)
    return endpoint


@pytest.fixture
def researcher_client(desk: Project) -> Client:
    user, _ = create_user(email="rose@example.org", password="long enough for all")
    set_member(project=desk, user=user, role=Role.RESEARCHER, by=None)
    client = Client()
    client.force_login(user)
    return client


def keep(endpoint: Endpoint, some: list[SampleRow], run: str = "grpo-1") -> None:
    """One after the other, after those that are there."""
    start = timezone.now() - timedelta(hours=1) + timedelta(seconds=endpoint.samples.count())
    ScoreSample.objects.bulk_create(
        sample(endpoint, one, run=run, at=start + timedelta(seconds=place)) for place, one in enumerate(some)
    )


def test_traffic_as_in_training_raises_nothing(endpoint) -> None:
    keep(endpoint, rows(300))
    check_endpoints()
    assert not Alert.objects.exists()
    reading = Reading.objects.get()
    assert (reading.run, reading.version, reading.count) == ("grpo-1", 1, 300)
    assert set(reading.values) == {
        "reward_psi",
        "tokens_psi",
        "uncertain",
        "out_of_distribution",
        "length_correlation",
        "steps_correlation",
        "repetition",
    }
    check_endpoints()  # nothing new
    assert Reading.objects.count() == 1


def test_an_exploit_is_told_once_with_what_is_behind_it(endpoint, desk) -> None:
    Webhook.objects.create(project=desk, url="https://example.org/hook", events=["alert.raised"])
    keep(endpoint, exploiting(300))
    check_endpoints()
    alert = Alert.objects.get(rule="length correlation")
    assert alert.value > 0.5 and "grpo-1" in alert.detail
    behind = list(alert.samples.order_by("-reward"))
    assert len(behind) == BEHIND
    assert behind[0].reward == max(ScoreSample.objects.values_list("reward", flat=True))
    told = Delivery.objects.filter(type="alert.raised", data__rule="length correlation").get()
    assert told.data["url"].endswith(f"/p/desk/alerts/{alert.pk}/")
    assert told.data["endpoint"] == "reward"
    count = Alert.objects.count()
    before = alert.seen_at
    keep(endpoint, exploiting(50, seed=5))
    check_endpoints()
    assert Alert.objects.count() == count
    alert.refresh_from_db()
    assert alert.seen_at > before
    assert Delivery.objects.filter(data__rule="length correlation").count() == 1
    # another run is told of by itself
    keep(endpoint, exploiting(300, seed=7), run="grpo-2")
    check_endpoints()
    assert Alert.objects.filter(rule="length correlation").count() == 2


def as_messages(endpoint: Endpoint) -> None:
    """Two answers to each prompt, so that there is something to compare."""
    for place, one in enumerate(endpoint.samples.order_by("pk")):
        prompt, answer = f"Where is order {place // 2}?", f"I said {place}."
        one.item = {
            "messages": [{"role": "user", "content": prompt}, {"role": "assistant", "content": answer}]
        }
        one.save(update_fields=["item"])


@pytest.mark.parametrize("turns", [False, True])
def test_a_rule_asks_people_by_itself(endpoint, turns: bool) -> None:
    rule = {"name": "long", "measure": "length_correlation", "above": 0.25, "asks": 7, "turns": turns}
    Monitor.objects.create(endpoint=endpoint, rules=[rule])
    keep(endpoint, exploiting(120))
    as_messages(endpoint)
    check_endpoints()
    alert = Alert.objects.get()
    follow_up = alert.follow_ups.get()
    assert len(follow_up.items) == 7 and follow_up.requested_by is None
    assert follow_up.campaign.name == "Follow-up of reward"
    assert [cycle.follow_up for cycle in RetrainingCycle.objects.all()] == [follow_up] * turns
    assert all(
        cycle.automatic and cycle.stage == RetrainingCycle.Stage.ASKING
        for cycle in RetrainingCycle.objects.all()
    )
    keep(endpoint, exploiting(20, seed=4))
    as_messages(endpoint)
    check_endpoints()  # the alert is there, and was acted on
    assert alert.follow_ups.count() == 1


def test_a_rule_that_cannot_ask_raises_its_alert_all_the_same(endpoint, caplog) -> None:
    rule = {"name": "long", "measure": "length_correlation", "above": 0.25, "asks": 7}
    Monitor.objects.create(endpoint=endpoint, rules=[rule])
    keep(endpoint, exploiting(120))  # bare texts, which no one can compare
    check_endpoints()
    assert Alert.objects.get().follow_ups.count() == 0
    assert "There is nothing to compare the samples with" in caplog.text


def test_what_was_closed_is_not_told_again(endpoint, researcher_client, desk) -> None:
    keep(endpoint, exploiting(300))
    check_endpoints()
    alert = Alert.objects.get(rule="length correlation")
    path = reverse("monitoring:alert-detail", args=["desk", alert.pk])
    page = researcher_client.get(path).content.decode()
    assert "grpo-1" in page and "0.250 from the baseline, in either direction" in page
    assert researcher_client.post(path, {"note": "It is a <b>test</b>."}).status_code == 302
    alert.refresh_from_db()
    assert not alert.is_open
    page = researcher_client.get(reverse("monitoring:alert-list", args=["desk"])).content.decode()
    assert "It is a &lt;b&gt;test&lt;/b&gt;." in page
    keep(endpoint, exploiting(100, seed=3))
    check_endpoints()
    assert Alert.objects.filter(rule="length correlation").count() == 1
    assert (
        researcher_client.post(path, {"note": ""}, follow=True).status_code == 200
    )  # said, and nothing else


def test_without_a_training_it_is_compared_with_what_came_first(endpoint) -> None:
    RewardModel.objects.update(manifest={"reward": {"median": 0.5, "std": 2.0}})
    keep(endpoint, rows(300))
    check_endpoints()
    assert not Alert.objects.exists()
    keep(endpoint, exploiting(300, seed=4))
    check_endpoints()
    alert = Alert.objects.get(rule="length correlation")
    assert " at first;" in alert.detail


def test_rules_that_a_project_wrote(endpoint, researcher_client) -> None:
    path = reverse("monitoring:monitor-detail", args=["desk", "reward"])
    rule = {"name": "long", "measure": "tokens_psi", "above": 0.1, "window": 200, "least": 50}
    assert researcher_client.post(path, {"rules": json.dumps([rule])}).status_code == 302
    assert Monitor.objects.get().rules == [rule | {"asks": 0, "turns": False}]
    for wrong, said in [("{", "JSON"), ('[{"name": "a"}]', "/rules/0"), ("[1]", "/rules/0")]:
        page = researcher_client.post(path, {"rules": wrong}).content.decode()
        assert said in page and "is-invalid" in page
    keep(endpoint, exploiting(60))
    check_endpoints()
    assert list(Alert.objects.values_list("rule", flat=True)) == ["long"]
    assert researcher_client.post(path, {"rules": "[]"}).status_code == 302
    assert "overoptimization" in researcher_client.get(path).content.decode()  # the default ones are back


def test_gold_and_proxy_are_drawn_by_policy(endpoint, researcher_client) -> None:
    dice, some = random.Random(0), []
    for policy in range(6):
        for number in range(50):
            gold = dice.gauss(-0.5 * policy, 0.5)
            reward = dice.gauss(0.8 * policy, 0.5)
            version = f"step-{policy}"
            some.append(
                row(dice, number, policy_version=version, reward=reward, gold=gold, kl=float(policy**2))
            )
    keep(endpoint, some)
    check_endpoints()
    alert = Alert.objects.get(rule="overoptimization")
    assert alert.policy_version == "step-5"
    page = researcher_client.get(reverse("monitoring:monitor-detail", args=["desk", "reward"]))
    drawing = page.context["gold_chart"]
    assert drawing["x"]["name"] == "√KL, nats"
    proxy, gold = (series["points"] for series in drawing["series"])
    assert [x for x, _ in proxy] == pytest.approx([0, 1, 2, 3, 4, 5])
    assert proxy[0][1] < -1 < 1 < proxy[-1][1]
    assert gold[0][1] > 1 > -1 > gold[-1][1]
    policies = page.context["policies"]
    assert [policy.name for policy in policies] == [f"step-{n}" for n in range(6)]
    assert policies[5].root_kl == pytest.approx(5.0)
    top = ScoreSample.objects.get(pk=policies[5].top)
    assert top.policy_version == "step-5"


def test_pages_before_there_is_anything(desk, researcher_client) -> None:
    def page(name: str, *args: str) -> str:
        return researcher_client.get(reverse(f"monitoring:{name}", args=["desk", *args])).content.decode()

    assert "No endpoints yet" in page("alert-list")
    Endpoint.objects.create(project=desk, name="quiet")
    assert "sampling is off" in page("alert-list")
    assert "Sampling is off" in page("monitor-detail", "quiet")
    assert "Not monitored" in page("monitor-summary", "quiet")
    Endpoint.objects.filter(name="quiet").update(sample_share=0.5)
    assert "Not enough samples yet" in page("monitor-detail", "quiet")
    assert "No samples yet" in page("monitor-summary", "quiet")


def test_old_readings_go(endpoint) -> None:
    keep(endpoint, rows(300))
    check_endpoints()
    Reading.objects.update(at=timezone.now() - timedelta(days=91))
    delete_old_readings()
    assert not Reading.objects.exists()


def test_a_look_at_many_runs_reads_each_once(endpoint, django_assert_max_num_queries) -> None:
    for run in range(3):
        keep(endpoint, rows(120, seed=run), run=f"run-{run}")
    with django_assert_max_num_queries(12 + 3 * 12):
        check_endpoints()
    assert Reading.objects.count() == 3


def test_another_run_can_be_chosen(endpoint, researcher_client) -> None:
    for run in ("grpo a&b", "grpo-2"):
        keep(endpoint, rows(120), run=run)
    check_endpoints()
    path = reverse("monitoring:monitor-detail", args=["desk", "reward"])
    assert "?version=1&amp;run=grpo%20a%26b" in researcher_client.get(path).content.decode()
    assert researcher_client.get(path, {"version": "1", "run": "grpo a&b"}).context["chosen"] == (
        1,
        "grpo a&b",
    )
    assert researcher_client.get(path, {"version": "x", "run": "none"}).context["chosen"][0] == 1


def test_closing_twice_is_refused(endpoint, desk) -> None:
    keep(endpoint, exploiting(300))
    check_endpoints()
    alert = Alert.objects.first()
    user, _ = create_user(email="eve@example.org", password="long enough for all")
    close_alert(alert=alert, note="", by=user)
    with pytest.raises(Conflict):
        close_alert(alert=alert, note="", by=user)
    save_rules(endpoint=endpoint, rules=[], by=user)


def test_rules_of_earlier_versions_are_renamed(endpoint: Endpoint) -> None:
    """Their alerts count as raised under the new name, and a rule that was edited keeps its settings."""
    migration = import_module("apps.monitoring.migrations.0006_rule_names")
    numbers = dict.fromkeys(("value", "baseline", "limit", "margin", "count"), 1)
    alert = Alert.objects.create(endpoint=endpoint, version=1, rule="reward without gold", **numbers)
    rules = [
        {"name": "people disagree", "measure": "disagreement", "above": 0.3},
        {"name": "mine", "measure": "gold", "above": 1},
    ]
    monitor, _ = Monitor.objects.update_or_create(endpoint=endpoint, defaults={"rules": rules})
    migration.forwards(apps, None)
    alert.refresh_from_db()
    monitor.refresh_from_db()
    assert alert.rule == "overoptimization" and alert.rule in {rule.name for rule in DEFAULTS}
    assert monitor.rules == [rules[0] | {"name": "annotator disagreement"}, rules[1]]
    migration.backwards(apps, None)
    monitor.refresh_from_db()
    assert monitor.rules == rules


def test_a_rule_of_people_that_had_the_new_name_already_stops_no_migration(endpoint: Endpoint) -> None:
    migration = import_module("apps.monitoring.migrations.0006_rule_names")
    numbers = dict.fromkeys(("value", "baseline", "limit", "margin", "count"), 1)
    for version, rule in ((1, "rewards drift"), (1, "reward drift"), (2, "rewards drift")):
        Alert.objects.create(endpoint=endpoint, version=version, rule=rule, **numbers)
    migration.forwards(apps, None)
    assert sorted(Alert.objects.values_list("version", "rule")) == [
        (1, "reward drift"),
        (1, "rewards drift"),
        (2, "reward drift"),
    ]
