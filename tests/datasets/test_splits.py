import pytest

from apps.core.errors import DomainError
from apps.datasets.splits import check_shares, split_tasks

TASKS = [f"task-{n}" for n in range(2000)]


def test_shares_are_kept_and_every_task_has_one_split() -> None:
    split = split_tasks(TASKS)
    assert set(split) == set(TASKS)
    share = {name: list(split.values()).count(name) / len(TASKS) for name in ("train", "validation", "test")}
    assert share == pytest.approx({"train": 0.8, "validation": 0.1, "test": 0.1}, abs=0.03)


def test_a_task_stays_where_it_is_when_others_come() -> None:
    few, many = split_tasks(TASKS[:500]), split_tasks(TASKS)
    assert all(many[task] == split for task, split in few.items())


def test_the_seed_decides() -> None:
    assert split_tasks(TASKS, seed=1) != split_tasks(TASKS, seed=0)
    assert split_tasks(TASKS, seed=1) == split_tasks(reversed(TASKS), seed=1)


@pytest.mark.parametrize("n", range(4, 12))
def test_four_tasks_are_enough_for_every_split(n: int) -> None:
    for seed in range(30):
        split = list(split_tasks(TASKS[:n], seed=seed).values())
        assert set(split) == {"train", "validation", "test"}
        assert split.count("train") >= 2


def test_of_three_tasks_two_are_trained_on_and_one_is_tested_on() -> None:
    for seed in range(30):
        assert sorted(split_tasks(TASKS[:3], seed=seed).values()) == ["test", "train", "train"]


@pytest.mark.parametrize("n", [1, 2])
def test_with_fewer_all_are_trained_on(n: int) -> None:
    assert set(split_tasks(TASKS[:n]).values()) == {"train"}


def test_given_test_tasks_are_the_test_split() -> None:
    split = split_tasks(TASKS[:20], test_tasks=["task-3", "task-4", "never-judged"])
    assert {task for task, name in split.items() if name == "test"} == {"task-3", "task-4"}
    assert set(split.values()) == {"train", "validation", "test"}


def test_test_tasks_that_do_not_fit_are_refused() -> None:
    with pytest.raises(DomainError, match="None of the 1 test tasks"):
        split_tasks(TASKS[:5], test_tasks=["elsewhere"])
    with pytest.raises(DomainError, match="Every task is a test task"):
        split_tasks(TASKS[:2], test_tasks=TASKS)


@pytest.mark.parametrize("shares", [(1, 1, 1), (0.5, 0.5), (1.2, -0.1, -0.1), (0, 0.5, 0.5)])
def test_shares_that_are_none(shares: tuple[float, ...]) -> None:
    with pytest.raises(DomainError):
        check_shares(shares)
