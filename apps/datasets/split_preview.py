"""What a dataset version would hold, before it is frozen: tasks and records of each split, and what is too small."""

from collections import Counter
from collections.abc import Collection
from dataclasses import dataclass
from itertools import islice
from typing import Any

from apps.accounts.models import Project
from apps.datasets.derived_records import DERIVED_SOURCES
from apps.datasets.services import checked_filter
from apps.datasets.splits import SHARES, SPLITS, check_shares, shares_with_test, split_tasks
from apps.datasets.statistics import is_usable_pair, record_task
from apps.datasets.version_builder import records_with_eligibility
from workers.schema import FeedbackRecord
from workers.schema.records import KIND_OF

MAX_RECORDS = 5000  # that are read while a person waits
MIN_TEST_TASKS = 10  # below, no conclusion is drawn from a test split, as in workers.evaluate.bootstrap
GOOD_TEST_TASKS = 30
TEST_PERCENTS = (10, 15, 20, 25, 30)  # that are tried where no share is given


@dataclass(frozen=True, slots=True)
class SplitCounts:
    name: str
    tasks: int
    records: int
    comparisons: int


@dataclass(frozen=True, slots=True)
class SplitPreview:
    """shares: of the tasks, of SPLITS. kinds: records by type. is_partial: only MAX_RECORDS records were read."""

    shares: tuple[float, float, float]
    splits: list[SplitCounts]
    kinds: list[tuple[str, int]]
    is_partial: bool

    @property
    def test_percent(self) -> int:
        return round(100 * self.shares[SPLITS.index("test")])

    @property
    def test_tasks(self) -> int:
        return next(split.tasks for split in self.splits if split.name == "test")

    @property
    def warning(self) -> str:
        """Empty where the test split is large enough."""
        if self.is_partial or self.test_tasks >= GOOD_TEST_TASKS:
            return ""
        tasks = f"{self.test_tasks} test task{'' if self.test_tasks == 1 else 's'}"
        if self.test_tasks < MIN_TEST_TASKS:
            return (
                f"{tasks}: too few for a conclusion about a model, which needs at least {MIN_TEST_TASKS}. Annotate "
                "more tasks, hold out a larger share, or train with folds, which evaluate the recipe on every task."
            )
        return f"{tasks}: intervals will be wide below {GOOD_TEST_TASKS} tasks. Folds use every task."


def preview_split(
    *,
    project: Project,
    filters: dict[str, Any],
    derived: Collection[str] = (),
    test_tasks: Collection[str] | None = None,
    shares: tuple[float, ...] | None = None,
    seed: int = 0,
) -> SplitPreview | None:
    """None where no feedback matches. Raises DomainError as `freeze_dataset` does.

    shares: None is the smallest test share of TEST_PERCENTS that gives enough test tasks for a conclusion, and the
    smallest of all where none does, or where the test tasks are named.
    """
    read = _read_records(project, filters, derived)
    if not read:
        return None
    if shares is not None or test_tasks is not None:
        return _split_records(read, shares or SHARES, seed, test_tasks)
    first = None
    for percent in TEST_PERCENTS:
        preview = _split_records(read, shares_with_test(percent / 100), seed, None)
        if preview.test_tasks >= MIN_TEST_TASKS:
            return preview
        first = first or preview
    return first


def _read_records(
    project: Project, filters: dict[str, Any], derived: Collection[str]
) -> list[tuple[FeedbackRecord, bool]]:
    """At most one more than MAX_RECORDS, which tells that there are more."""
    filters = {key: value for key, value in filters.items() if value}
    filters |= checked_filter(project, filters)
    sources = [DERIVED_SOURCES[name] for name in derived]
    return list(islice(records_with_eligibility(project, filters, sources), MAX_RECORDS + 1))


def _split_records(
    read: list[tuple[FeedbackRecord, bool]],
    shares: tuple[float, ...],
    seed: int,
    test_tasks: Collection[str] | None,
) -> SplitPreview:
    is_partial = len(read) > MAX_RECORDS
    read = read[:MAX_RECORDS]
    checked = check_shares(shares)
    split_of = split_tasks(
        {record_task(record) for record, _ in read},
        shares=checked,
        seed=seed,
        test_tasks=test_tasks,
    )
    counts, pairs, kinds = Counter[str](), Counter[str](), Counter[str]()
    for record, in_test in read:
        split = split_of[record_task(record)]
        if split == "test" and not in_test:
            continue
        counts[split] += 1
        pairs[split] += is_usable_pair(record)
        kinds[KIND_OF[type(record)]] += 1
    tasks = Counter(split_of.values())
    return SplitPreview(
        checked,
        [SplitCounts(split, tasks[split], counts[split], pairs[split]) for split in SPLITS],
        kinds.most_common(),
        is_partial,
    )
