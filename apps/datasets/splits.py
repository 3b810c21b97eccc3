"""Which split a task belongs to: by a hash of its id, so that no task is on two sides and none moves later."""

import hashlib
import math
from collections.abc import Collection

from apps.core.errors import DomainError

SPLITS = ("train", "validation", "test")
SHARES = (0.8, 0.1, 0.1)
LEAST_TRAINING_TASKS = 2


def check_shares(shares: tuple[float, ...]) -> tuple[float, float, float]:
    if (
        len(shares) != 3
        or any(not 0 <= share <= 1 for share in shares)
        or not math.isclose(sum(shares), 1, abs_tol=1e-6)
    ):
        raise DomainError(
            "The shares of train, validation and test are three numbers from 0 to 1 that add up to 1.",
            pointer="/shares",
        )
    if shares[0] == 0:
        raise DomainError(
            "The share of the training split is 0. It must be greater than 0.", pointer="/shares"
        )
    return shares[0], shares[1], shares[2]


def shares_with_test(test: float) -> tuple[float, float, float]:
    """Shares of train, validation and test: as many tasks for validation as for the test, at most 10 %."""
    validation = 0.1 if test == 0 else min(0.1, test)
    return round(1 - test - validation, 6), validation, test


def split_tasks(
    tasks: Collection[str],
    *,
    shares: tuple[float, float, float] = SHARES,
    seed: int = 0,
    test_tasks: Collection[str] | None = None,
) -> dict[str, str]:
    """The split of every task.

    A task's place depends on its id and the seed alone, so that it stays when others come. Where chance left a split
    with a share empty and there are three tasks or more, the nearest training task is moved; then the training split
    gets a second task, of the validation split if need be: from one task nothing can be learned. test_tasks: exactly
    these are the test split, and the others are shared out between train and validation.
    """
    fixed = None if test_tasks is None else set(test_tasks) & set(tasks)
    if fixed is not None and not fixed:
        raise DomainError(
            f"None of the {len(set(test_tasks or ()))} test tasks is among the {len(set(tasks))} tasks with feedback; "
            "check the task ids.",
            pointer="/test_tasks",
        )
    rest = sorted(set(tasks) - (fixed or set()), key=lambda task: (_unit(task, seed), task))
    if not rest:
        raise DomainError(
            "Every task is a test task, so the training split is empty. Remove some test tasks."
        )
    train, validation, test = shares if fixed is None else _without_test(shares)
    split = {}
    for task in rest:
        unit = _unit(task, seed)
        split[task] = "train" if unit < train else "validation" if unit < train + validation else "test"
    wanted = [name for name, share in zip(SPLITS, (train, validation, test), strict=True) if share > 0]
    _fill(split, rest, wanted)
    _keep_two_in_training(split, rest)
    return split | dict.fromkeys(fixed or (), "test")


def _without_test(shares: tuple[float, float, float]) -> tuple[float, float, float]:
    total = shares[0] + shares[1]
    return shares[0] / total, shares[1] / total, 0.0


def _fill(split: dict[str, str], ordered: list[str], wanted: list[str]) -> None:
    """Move tasks, in the order of their hashes, from the fullest split to empty ones."""
    if len(ordered) < len(wanted):
        split.update(dict.fromkeys(ordered, "train"))
        return
    for name in wanted:
        if name in split.values():
            continue
        count = {each: sum(1 for found in split.values() if found == each) for each in wanted}
        fullest = max(wanted, key=lambda each: count[each])
        members = [task for task in ordered if split[task] == fullest]
        split[members[0] if name == "train" else members[-1]] = name


def _keep_two_in_training(split: dict[str, str], ordered: list[str]) -> None:
    """Move tasks from a split that has several, else from validation, until the training split has two."""
    while sum(found == "train" for found in split.values()) < LEAST_TRAINING_TASKS:
        count = {name: sum(found == name for found in split.values()) for name in ("validation", "test")}
        donors = [name for name in count if count[name] > 1] or ["validation"] * (count["validation"] > 0)
        if not donors:
            return
        donor = max(donors, key=lambda name: count[name])
        split[next(task for task in ordered if split[task] == donor)] = "train"


def _unit(task: str, seed: int) -> float:
    """A number in [0, 1) that is the same everywhere."""
    digest = hashlib.sha256(f"{seed}:{task}".encode("utf-8", "surrogatepass")).digest()
    return int.from_bytes(digest[:7], "big") / 2**56
