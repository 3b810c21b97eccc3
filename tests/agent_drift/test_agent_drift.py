"""Agent versions that are worse than the first one: the page, and one alert of each."""

import pytest
from django.urls import reverse

from apps.accounts.models import AuditEvent, Project, Role
from apps.accounts.services import create_project
from apps.agent_drift.models import AgentReference
from apps.agent_drift.references import choose_reference
from apps.agent_drift.selectors import OUTCOME, VERB, score_series, version_scores
from apps.agent_drift.services import check_agents, raise_drift_alerts
from apps.core.errors import DomainError
from apps.inbox.models import Notification
from apps.trajectories.models import Task, Trajectory
from apps.trajectories.services import replace_facts
from tests.factories import make_member, make_outsider, member_client, signed_in

ADDRESS = "agent_drift:version-list"


def add_version(
    project: Project, version: str, *, count: int, bad: int = 0, agent: str = "desk"
) -> list[Trajectory]:
    """`bad` of them failed."""
    task, _ = Task.objects.get_or_create(project=project, external_id="t", defaults={"instruction": "Help."})
    return [
        Trajectory.objects.create(
            project=project,
            task=task,
            agent_name=agent,
            agent_version=version,
            source_format="openai",
            content_hash="0" * 64,
            step_count=2,
            agent_step_count=1,
            token_count=9,
            success=number >= bad,
        )
        for number in range(count)
    ]


@pytest.fixture
def project(db: None) -> Project:
    return create_project(slug="desk")


def test_a_worse_version_raises_one_alert(project: Project) -> None:
    make_member(project, "rose@example.org", Role.RESEARCHER)
    add_version(project, "1", count=60, bad=2)
    add_version(project, "2", count=60, bad=3)
    assert raise_drift_alerts(project) == []
    add_version(project, "3", count=60, bad=30)
    check_agents()
    event = AuditEvent.objects.get(project=project, verb=VERB)
    assert (event.data["version"], event.data["score"], event.data["reference_version"]) == (
        "desk 3",
        OUTCOME,
        "1",
    )
    notification = Notification.objects.get(user__email="rose@example.org")
    assert "desk 3 is worse than version 1 in failed outcome: 50.0 % of 60 trajectories" in notification.title
    check_agents()
    assert AuditEvent.objects.filter(verb=VERB).count() == 1
    add_version(project, "4", count=60, bad=40)
    assert [row.agent_version for row in raise_drift_alerts(project)] == ["4"]


def test_a_slow_drift_is_found_over_versions(project: Project) -> None:
    add_version(project, "0", count=300, bad=6)
    for number in range(1, 6):
        add_version(project, str(number), count=60, bad=9)
    rows = {row.agent_version: row for row in version_scores(project)}
    assert not rows["1"].has_drifted  # no version alone is enough
    assert rows["5"].has_drifted and rows["5"].later.trials == 300
    assert rows["0"].state == "reference" and rows["0"].log_e_value is None


def test_scores_of_metrics_and_judges_are_compared_too(project: Project) -> None:
    first, second = add_version(project, "1", count=50), add_version(project, "2", count=50)
    facts = [(each.pk, "Keeps secrets", 1.0) for each in first]
    facts += [(each.pk, "Keeps secrets", -1.0 if place % 2 else 1.0) for place, each in enumerate(second)]
    replace_facts(project=project, kind="judge 1", facts=facts)
    rows = {(row.score, row.agent_version): row for row in version_scores(project)}
    assert rows["Keeps secrets", "2"].has_drifted
    assert not rows[OUTCOME, "2"].has_drifted
    assert rows["Keeps secrets", "2"].alpha == pytest.approx(0.01 / 4)


def test_small_references_other_agents_and_single_versions_are_not_tested(project: Project) -> None:
    add_version(project, "1", count=10)
    add_version(project, "2", count=60, bad=50)
    add_version(project, "", count=60, bad=50, agent="alone")
    rows = version_scores(project)
    assert {row.agent_name for row in rows} == {"desk"}
    assert [row.state for row in rows] == ["reference", "reference below 30"]
    assert raise_drift_alerts(project) == []


def test_an_archived_project_is_left_alone(project: Project) -> None:
    from django.utils import timezone

    add_version(project, "1", count=60)
    add_version(project, "2", count=60, bad=50)
    Project.objects.filter(pk=project.pk).update(archived_at=timezone.now())
    check_agents()
    assert not AuditEvent.objects.filter(verb=VERB).exists()


def test_the_page_shows_what_drifted(project: Project) -> None:
    client = member_client(project, Role.RESEARCHER)
    address = reverse(ADDRESS, args=["desk"])
    assert b"No versions to compare" in client.get(address).content
    add_version(project, "1", count=60, bad=2)
    add_version(project, "2", count=60, bad=30)
    page = client.get(address).content.decode()
    assert "desk 2 is worse than version 1 in failed outcome" in page
    assert "30 of 60" in page and "2 of 60" in page
    assert client.post(address).status_code == 405
    assert member_client(project, Role.ANNOTATOR).get(address).status_code == 403
    assert signed_in(make_outsider()).get(address).status_code == 404


def test_another_version_can_be_the_reference(project: Project) -> None:
    add_version(project, "1", count=60, bad=30)
    add_version(project, "2", count=60, bad=2)
    add_version(project, "3", count=60, bad=30)
    assert raise_drift_alerts(project) == []  # no version is worse than the first one
    choose_reference(project=project, agent="desk", version="2", by=None)
    rows = {row.agent_version: row for row in version_scores(project)}
    assert [rows[version].state for version in "123"] == ["before the reference", "reference", "worse"]
    assert rows["3"].later.trials == 60 and rows["1"].later.trials == 0
    assert [row.agent_version for row in raise_drift_alerts(project)] == ["3"]
    assert raise_drift_alerts(project) == []
    event = AuditEvent.objects.get(project=project, verb=VERB)
    assert event.data["reference_version"] == "2"
    add_version(project, "4", count=200, bad=200)
    assert [row.agent_version for row in raise_drift_alerts(project)] == ["4"]
    choose_reference(project=project, agent="desk", version=None, by=None)
    assert [row.agent_version for row in raise_drift_alerts(project)] == ["4"]  # worse than version 1, too
    with pytest.raises(DomainError, match="There is no agent"):
        choose_reference(project=project, agent="other", version="1", by=None)
    with pytest.raises(DomainError, match="has no version '9'"):
        choose_reference(project=project, agent="desk", version="9", by=None)
    assert not AgentReference.objects.exists()


def test_a_series_counts_by_day_and_version(project: Project) -> None:
    old = add_version(project, "1", count=4, bad=1)
    new = add_version(project, "2", count=3, bad=2)
    days = {each.pk: f"2026-01-0{1 + place % 2}T23:30:00Z" for place, each in enumerate([*old, *new])}
    for key, moment in days.items():
        Trajectory.objects.filter(pk=key).update(created_at=moment)
    found = [
        (str(each.day), each.agent_version, each.count.bad, each.count.trials)
        for each in score_series(project, "desk", OUTCOME)
    ]
    assert found == [
        ("2026-01-01", "1", 1, 2),
        ("2026-01-01", "2", 1, 2),
        ("2026-01-02", "1", 0, 2),
        ("2026-01-02", "2", 1, 1),
    ]
    replace_facts(
        project=project, kind="judge 1", facts=[(old[0].pk, "Polite", -1.0), (old[2].pk, "Polite", 1.0)]
    )
    (polite,) = score_series(project, "desk", "Polite")
    assert (str(polite.day), polite.count.bad, polite.count.trials) == ("2026-01-01", 1, 2)


def test_the_page_chooses_the_reference(project: Project) -> None:
    client = member_client(project, Role.RESEARCHER)
    for version in ("1", "2", "3"):
        add_version(project, version, count=40, bad=2)
    address, choose = reverse(ADDRESS, args=["desk"]), reverse("agent_drift:reference-choose", args=["desk"])
    assert "Use the oldest" not in client.get(address).content.decode()
    client.post(choose, {"agent": "desk", "version": "2"})
    page = client.get(address).content.decode()
    assert "Use the oldest" in page and "before the reference" in page
    assert AgentReference.objects.get().chosen_by is not None
    client.post(choose, {"agent": "desk", "version": "9"})
    assert AgentReference.objects.get().agent_version == "2"
    client.post(choose, {"agent": "desk", "oldest": "1"})
    assert not AgentReference.objects.exists()
    assert member_client(project, Role.ANNOTATOR).post(choose, {"agent": "desk"}).status_code == 403
