"""Key nodes and agent versions by the client, on a running server."""

import pytest
from touchstone_client import Client, RewardServiceError

from apps.accounts.models import Project
from apps.agent_drift.services import raise_drift_alerts
from apps.trajectories.models import Trajectory
from tests.agent_drift.test_agent_drift import add_version
from tests.key_nodes.conftest import NODES, RECORDS, add_trajectories


def test_key_nodes_are_set_read_edited_and_deleted(client: Client, project: Project) -> None:
    add_trajectories(project, *RECORDS)
    own = client.key_nodes.set("refund 7", NODES)
    assert (own.task, own.revision, len(own.nodes), own.in_order) == ("refund 7", 1, 3, False)
    assert client.key_nodes.get(own.id) == own
    assert [each.id for each in client.key_nodes.list(task="refund 7")] == [own.id]
    assert list(client.key_nodes.list(task="other")) == []
    shares = {each.trajectory: each.share for each in client.key_nodes.completions(own)}
    full = Trajectory.objects.get(external_id="all")
    assert shares[full.pk] == 1.0 and sorted(shares.values()) == pytest.approx([0.0, 1 / 3, 1.0])
    reached = client.key_nodes.reached(full.pk)
    assert (reached.key_nodes, reached.share) == (own.id, 1.0)
    assert reached.nodes[2] == {
        "name": "refund it",
        "step": 4,
        "expected": "refunded 20 EUR",
        "observed": "refunded 25 EUR",
        "is_expected": False,
    }
    edited = client.key_nodes.edit(own, NODES[::-1], in_order=True)
    assert (edited.revision, edited.in_order, edited.nodes[0]["name"]) == (2, True, "refund it")
    with pytest.raises(RewardServiceError, match="regular expression") as found:
        client.key_nodes.edit(own, [{"name": "a", "text": "("}])
    assert found.value.status == 422
    with pytest.raises(RewardServiceError, match="There is no task 'nowhere'"):
        client.key_nodes.set("nowhere", NODES)
    client.key_nodes.delete(own)
    assert client.key_nodes.reached(full.pk).key_nodes is None


def test_versions_are_compared_with_a_chosen_reference(client: Client, project: Project) -> None:
    add_version(project, "1", count=60, bad=30)
    add_version(project, "2", count=60, bad=2)
    add_version(project, "3", count=60, bad=30)
    report = client.agent_versions.compare()
    (versions,) = report.agents
    assert (versions.versions, versions.reference, versions.is_chosen) == (("1", "2", "3"), "1", False)
    assert [row.state for row in report.scores] == ["reference", "not worse", "not worse"]
    chosen = client.agent_versions.choose_reference("desk", "2")
    assert chosen.agents[0].is_chosen and [row.is_worse for row in chosen.scores] == [False, False, True]
    raise_drift_alerts(project)
    (alert,) = client.agent_versions.alerts()
    assert (alert.version, alert.reference, alert.trajectories) == ("desk 3", "2", 60)
    assert alert.raised is not None and alert.log_e_value > 0
    series = client.agent_versions.series("desk")
    assert [(day.version, day.bad, day.trajectories) for day in series.days] == [
        ("1", 30, 60),
        ("2", 2, 60),
        ("3", 30, 60),
    ]
    assert client.agent_versions.compare("other").scores == ()
    assert not client.agent_versions.choose_reference("desk", None).agents[0].is_chosen
    with pytest.raises(RewardServiceError, match="has no version '9'"):
        client.agent_versions.choose_reference("desk", "9")
