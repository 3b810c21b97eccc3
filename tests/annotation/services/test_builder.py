"""The item builder: alone, in pairs or groups; different where asked, n per task, the same pairs for the same seed."""

import pytest

from apps.annotation import services
from apps.annotation.models import Annotator, Assignment, Campaign, Item
from apps.annotation.services import ItemBuildOptions
from apps.core.errors import DomainError
from apps.trajectories.filters import parse_filter
from apps.trajectories.models import Task, Trajectory
from tests.annotation import rows


@pytest.fixture
def runs(task: Task) -> list[Trajectory]:
    return [
        rows.trajectory(task, "won 1", success=True, agent_name="fox"),
        rows.trajectory(task, "won 2", success=True, agent_name="owl"),
        rows.trajectory(task, "lost 1", success=False, agent_name="fox"),
        rows.trajectory(task, "lost 2", success=False, agent_name="owl"),
        rows.trajectory(task, "unknown", agent_name="owl"),
    ]


def pairs() -> list[tuple[Trajectory, ...]]:
    return [
        tuple(p.trajectory for p in item.places.order_by("position")) for item in Item.objects.order_by("pk")
    ]


def test_by_outcome(campaign: Campaign, runs: list[Trajectory]) -> None:
    assert services.build_items(campaign=campaign, choice=ItemBuildOptions(per_task=100)).created == 4
    assert all({a.success, b.success} == {True, False} for a, b in pairs())


def test_by_reward_where_there_is_no_success(campaign: Campaign, task: Task) -> None:
    for number in (0.0, 0.5, 0.5):
        rows.trajectory(task, f"{number} {Trajectory.objects.count()}", outcome_reward=number)
    services.build_items(campaign=campaign, choice=ItemBuildOptions(per_task=100))
    assert all(a.outcome_reward != b.outcome_reward for a, b in pairs()) and len(pairs()) == 2


def test_by_agent(campaign: Campaign, runs: list[Trajectory]) -> None:
    assert (
        services.build_items(campaign=campaign, choice=ItemBuildOptions(per_task=100, differ="agent")).created
        == 6
    )
    assert all(a.agent_name != b.agent_name for a, b in pairs())


def test_any_but_never_with_itself(campaign: Campaign, runs: list[Trajectory]) -> None:
    assert (
        services.build_items(campaign=campaign, choice=ItemBuildOptions(per_task=100, differ="any")).created
        == 10
    )
    assert all(a != b for a, b in pairs())


def test_per_task_and_seed(campaign: Campaign, runs: list[Trajectory]) -> None:
    def chosen(seed: int) -> set[str]:
        Item.objects.all().delete()
        services.build_items(campaign=campaign, choice=ItemBuildOptions(per_task=2, differ="any", seed=seed))
        return set(Item.objects.values_list("key", flat=True))

    assert len(chosen(1)) == 2
    assert chosen(1) == chosen(1)
    assert len({frozenset(chosen(seed)) for seed in range(10)}) > 1


def test_again_adds_nothing(campaign: Campaign, runs: list[Trajectory]) -> None:
    services.build_items(campaign=campaign, choice=ItemBuildOptions(per_task=3))
    again = services.build_items(campaign=campaign, choice=ItemBuildOptions(per_task=3))
    assert (again.created, again.duplicates) == (0, 3)


def test_filters_and_preview(campaign: Campaign, runs: list[Trajectory]) -> None:
    owls = parse_filter("agent=owl")
    preview = services.count_items(project=campaign.project, choice=ItemBuildOptions(per_task=5, filter=owls))
    assert (preview.tasks, preview.items) == (1, 1)
    assert (
        services.build_items(campaign=campaign, choice=ItemBuildOptions(per_task=5, filter=owls)).created == 1
    )
    nothing = services.count_items(
        project=campaign.project,
        choice=ItemBuildOptions(per_task=5, filter=parse_filter("task=no such")),
    )
    assert (nothing.tasks, nothing.items) == (0, 0)


def test_wrong_options_are_refused(campaign: Campaign) -> None:
    with pytest.raises(DomainError, match="must be 1 or more"):
        services.build_items(campaign=campaign, choice=ItemBuildOptions(per_task=0))
    with pytest.raises(DomainError, match="differ"):
        services.build_items(campaign=campaign, choice=ItemBuildOptions(per_task=1, differ="mood"))
    with pytest.raises(DomainError, match="between 1 and 8"):
        services.build_items(campaign=campaign, choice=ItemBuildOptions(size=9))


def single(campaign: Campaign) -> Campaign:
    return services.create_campaign(
        project=campaign.project, name="Alone", feedback_types=["rating", "comment"]
    )


def test_runs_alone(campaign: Campaign, runs: list[Trajectory]) -> None:
    added = services.build_items(campaign=single(campaign), choice=ItemBuildOptions(size=1, per_task=3))
    assert added.created == 3 and all(len(item) == 1 for item in pairs())
    failed = parse_filter("success=no")
    assert (
        services.count_items(
            project=campaign.project, choice=ItemBuildOptions(size=1, per_task=9, filter=failed)
        ).items
        == 2
    )


def test_groups_share_no_run_and_mix_what_differs(campaign: Campaign, runs: list[Trajectory]) -> None:
    ranking = services.create_campaign(project=campaign.project, name="Order", feedback_types=["ranking"])
    services.build_items(campaign=ranking, choice=ItemBuildOptions(size=4, per_task=5))
    (group,) = pairs()
    assert sorted(run.success for run in group) == [False, False, True, True]
    assert (
        services.count_items(
            project=campaign.project, choice=ItemBuildOptions(size=3, per_task=5, differ="any")
        ).items
        == 1
    )


def test_an_item_of_a_size_the_campaign_cannot_show_is_refused(
    campaign: Campaign, runs: list[Trajectory]
) -> None:
    with pytest.raises(DomainError, match="Comparison needs 2 trajectories"):
        services.build_items(campaign=campaign, choice=ItemBuildOptions(size=1))


def test_a_limit_draws_from_all_tasks(campaign: Campaign, runs: list[Trajectory]) -> None:
    def chosen(seed: int) -> set[str]:
        Item.objects.all().delete()
        choice = ItemBuildOptions(per_task=100, differ="any", seed=seed, limit=2)
        assert services.count_items(project=campaign.project, choice=choice).items == 2
        services.build_items(campaign=campaign, choice=choice)
        return set(Item.objects.values_list("key", flat=True))

    assert len(chosen(1)) == 2 and chosen(1) == chosen(1)
    assert len({frozenset(chosen(seed)) for seed in range(10)}) > 1
    counted = services.count_items(
        project=campaign.project, choice=ItemBuildOptions(per_task=100, differ="any")
    )
    assert counted.possible == counted.items > 2


def test_new_items_are_assigned(campaign: Campaign, runs: list[Trajectory]) -> None:
    names = ("one", "two")
    annotators = [Annotator.objects.create(project=campaign.project, name=name) for name in names]
    services.update_campaign(campaign=campaign, overlap=2)
    campaign.refresh_from_db()
    added = services.build_items(campaign=campaign, choice=ItemBuildOptions(per_task=3))
    services.assign_new_items(campaign=campaign, items=added.items, annotators=annotators)
    assert list(Item.objects.values_list("claimed_count", flat=True)) == [2] * added.created
    held = Assignment.objects.filter(is_reserved=True, state=Assignment.State.ASSIGNED)
    assert held.count() == 2 * added.created
    got = services.assign_next_item(campaign=campaign, annotator=annotators[0])
    assert got is not None and got.item_id in added.items
    third = Annotator.objects.create(project=campaign.project, name="three")
    with pytest.raises(DomainError, match="assign fewer"):
        services.assign_new_items(campaign=campaign, items=added.items, annotators=[*annotators, third])


def test_one_matches_and_others_are_of_its_task(campaign: Campaign, runs: list[Trajectory]) -> None:
    owls = parse_filter("agent=owl")
    choice = ItemBuildOptions(per_task=100, differ="any", filter=owls, partner="any")
    services.build_items(campaign=campaign, choice=choice)
    made = pairs()
    assert made and all(any(run.agent_name == "owl" for run in pair) for pair in made)
    assert any(any(run.agent_name != "owl" for run in pair) for pair in made)
    strict = ItemBuildOptions(per_task=100, differ="any", filter=owls)
    assert services.count_items(project=campaign.project, choice=strict).items < len(made)
    with pytest.raises(DomainError, match="partner"):
        services.build_items(campaign=campaign, choice=ItemBuildOptions(partner="none"))  # type: ignore[arg-type]
