"""Key nodes of tasks: who sets them, what trajectories reach, and where that is used."""

from typing import Any

import pytest

from apps.accounts.models import AuditEvent, Project, Role
from apps.core.errors import DomainError, NotFound
from apps.datasets.version_builder import DERIVED_SOURCES
from apps.key_nodes import services
from apps.key_nodes.models import KeyNodeCompletion, TaskKeyNodes
from apps.key_nodes.selectors import list_completions, reached_counts, stale_trajectories
from apps.trajectories.models import Task, Trajectory
from apps.trajectories.selectors import load_trajectories
from tests.factories import make_member
from tests.key_nodes.conftest import CONFIRMED, FIND, FOUND, NODES, REFUND, add_trajectories, record
from workers.engine.rules import rate
from workers.schema import ScoreInput, ScoreRecord
from workers.schema.reference_parts import KeyNodeShare


def shares(task: Task) -> dict[str, float]:
    rows = KeyNodeCompletion.objects.filter(trajectory__task=task)
    return dict(rows.values_list("trajectory__external_id", "share"))


def test_completions_follow_every_change(task: Task, full: Trajectory) -> None:
    own = services.set_key_nodes(task=task, nodes=NODES, by=None)
    assert shares(task) == {"all": 1.0, "some": pytest.approx(1 / 3), "none": 0.0}
    completion = full.key_node_completion
    assert (completion.steps, completion.unexpected) == (
        [1, 2, 4],
        [2],
    )  # 20 EUR was expected, 25 were refunded
    assert reached_counts(own, list(list_completions(own))) == [2, 1, 1]
    task.refresh_from_db()
    assert task.metadata["key_nodes"] == own.document
    own = services.move_key_node(own=own, place=2, to=0, by=None)
    assert [node["name"] for node in own.nodes] == ["refund it", "find order", "confirmed"]
    own = services.set_key_nodes(task=task, nodes=own.nodes, in_order=True, by=None)
    assert shares(task) == {"all": pytest.approx(1 / 3), "some": 0.0, "none": 0.0}
    own = services.edit_key_node(own=own, place=0, node=FIND | {"name": "found"}, by=None)
    left = services.delete_key_node(own=own, place=1, by=None)
    assert left is not None and left.in_order and shares(task)["all"] == 1.0
    for _ in range(2):
        left = services.delete_key_node(own=own, place=0, by=None)
    assert left is None and not TaskKeyNodes.objects.exists() and not KeyNodeCompletion.objects.exists()
    task.refresh_from_db()
    assert "key_nodes" not in task.metadata
    assert AuditEvent.objects.filter(verb__startswith="key_nodes.").count() == 7


def test_trajectories_that_come_later_are_completed(project: Project, task: Task) -> None:
    services.set_key_nodes(task=task, nodes=[FIND], by=None)
    assert not stale_trajectories().exists()
    add_trajectories(project, record("late", FOUND))
    assert stale_trajectories(project).count() == 1
    assert services.refresh_completions() == 1
    assert shares(task)["late"] == 1.0
    assert services.refresh_completions() == 0


def test_the_component_pays_what_the_page_shows(task: Task, full: Trajectory) -> None:
    services.set_key_nodes(task=task, nodes=[*NODES, {"name": "thanks", "text": "thank you"}], by=None)
    content = load_trajectories([full.pk])[full.pk]
    score = rate(KeyNodeShare(name="k"), ScoreInput(content=content), len)
    full.refresh_from_db()
    assert score.raw == pytest.approx(full.key_node_completion.share) == pytest.approx(0.75)
    assert list(score.step_rewards) == pytest.approx([0.25, 0.25, 0.25])


def test_a_dataset_version_has_completion_rates_as_scores(project: Project, task: Task) -> None:
    source = DERIVED_SOURCES["key_nodes"]
    with pytest.raises(DomainError, match="No task with trajectories has key nodes"):
        list(source.records(project))
    services.set_key_nodes(task=task, nodes=NODES, by=None)
    add_trajectories(project, record("late", FOUND))
    records: list[Any] = list(source.records(project))
    assert all(isinstance(each, ScoreRecord) and each.origin == "judge" for each in records)
    assert [each.value for each in records] == pytest.approx([1.0, 1 / 3, 0.0, 1 / 3])
    assert records[1].note == "1 of 3 key nodes reached"


def test_what_is_refused(project: Project, task: Task) -> None:
    with pytest.raises(DomainError, match="at least one of tools") as found:
        services.add_key_node(task=task, node={"name": "a"}, by=None)
    assert found.value.pointer == ""
    with pytest.raises(DomainError, match="regular expression") as found:
        services.add_key_node(task=task, node={"name": "a", "text": "("}, by=None)
    assert found.value.pointer == "/text"
    with pytest.raises(DomainError) as found:
        services.set_key_nodes(task=task, nodes=[], by=None)
    assert found.value.pointer == "/nodes"
    own = services.add_key_node(task=task, node=CONFIRMED, by=None)
    with pytest.raises(DomainError, match="Duplicate key node"):
        services.add_key_node(task=task, node=CONFIRMED, by=None)
    for place in (1, -1):
        with pytest.raises(NotFound):
            services.edit_key_node(own=own, place=place, node=REFUND, by=None)


def test_who_changed_it_is_known(project: Project, task: Task) -> None:
    rose = make_member(project, "rose@example.org", Role.RESEARCHER)
    own = services.add_key_node(task=task, node=REFUND, by=rose)
    assert (own.changed_by, own.revision) == (rose, 1)
    assert services.add_key_node(task=task, node=FIND, by=None).revision == 2
