"""Building a dataset version: feedback is read once, split by task, written, stored, and never changed again."""

import tempfile
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from itertools import chain
from pathlib import Path
from typing import Any, TypeVar

from msgspec.structs import replace

from apps.accounts.models import Project
from apps.annotation.feedback.records import feedback_records
from apps.annotation.models import Annotation, Assignment, Item, is_by_judge
from apps.core.database.process_database import refresh_statistics
from apps.core.errors import DomainError
from apps.core.jobs.job_queue import (
    Cancelled,
    ClaimLost,
    JobHeartbeat,
    JobState,
    finish,
    keep_heartbeat,
    renew_heartbeat,
)
from apps.core.storage.artifacts import delete_tree, store_tree
from apps.core.storage.storage_names import storage_name
from apps.datasets.contents import Census, Reliability, content_hash, digest_of, is_usable_pair, task_of
from apps.datasets.derived import SOURCES, Source, check_derived
from apps.datasets.models import DatasetVersion
from apps.datasets.splits import SPLITS, split_tasks
from workers.schema import FeedbackRecord, OutcomeRecord, read_records, write_records
from workers.schema.leaks import find_leaks

T = TypeVar("T")
Report = Callable[[int], None]


def build_dataset_version(dataset_version: DatasetVersion, *, report: Report | None = None) -> DatasetVersion:
    """Freeze a claimed dataset version. Raises DomainError, having marked the row, when there is nothing to freeze.

    report: told how many records were read so far.
    """
    try:
        with keep_heartbeat(dataset_version) as heartbeat:
            _build(dataset_version, _Pulse(dataset_version, heartbeat, report))
    except Cancelled:
        finish(dataset_version, JobState.CANCELLED)
    except DomainError as error:
        finish(dataset_version, JobState.FAILED, error=error.message)
        raise
    return dataset_version


class _Pulse:
    """Tells the dataset version's heart how far it is while records pass."""

    def __init__(
        self, dataset_version: DatasetVersion, heartbeat: JobHeartbeat, report: Report | None
    ) -> None:
        self._dataset_version, self._heartbeat, self._report = dataset_version, heartbeat, report

    def over(self, records: Iterable[T], note: str) -> Iterator[T]:
        for number, record in enumerate(records, start=1):
            self._heartbeat.progress = {"done": number, "total": None, "note": note}
            self._heartbeat.check()
            if self._report is not None:
                self._report(number)
            yield record

    def now(self, done: int, note: str) -> None:
        """A part begins: beat at once, so that a short freeze hears of a cancel too."""
        if renew_heartbeat(self._dataset_version, progress={"done": done, "total": None, "note": note}):
            raise Cancelled


def _build(dataset_version: DatasetVersion, heartbeat: _Pulse) -> None:
    filters = {
        name: value for name, value in dataset_version.filters.items() if name not in ("split", "derived")
    }
    refresh_statistics(Annotation, Assignment, Item)
    with tempfile.TemporaryDirectory(prefix="dataset-") as scratch:
        # Read once into one file, so that every split is of the same moment.
        everything = Path(scratch) / "everything.jsonl.zst"
        made = [SOURCES[name] for name in check_derived(dataset_version.filters.get("derived") or ())]
        found = _Findings()
        counts = _that_count(dataset_version.project, filters, made)
        write_records(everything, found.over(heartbeat.over(counts, "reading feedback")))
        if not found.digests:
            raise DomainError(
                "There is no feedback that matches; label something or loosen the filters, then freeze again. What "
                "judges said counts only where origins name them."
            )
        heartbeat.now(len(found.digests), "splitting by task")
        tree = Path(scratch) / "tree"
        tree.mkdir()
        facts = _write_splits(dataset_version, everything, tree, found, heartbeat) | {
            "leaks": _leaks(tree, heartbeat)
        }
        name = storage_name("snapshots", f"{dataset_version.pk}-{dataset_version.attempt}")
        heartbeat.now(len(found.digests), "storing")
        store_tree(tree, name)
    try:
        finish(dataset_version, JobState.SUCCEEDED, artifact=name, progress={}, **facts)
    except ClaimLost:
        delete_tree(name)
        raise


def _that_count(
    project: Project, filters: dict[str, Any], made: Iterable[Source]
) -> Iterator[tuple[FeedbackRecord, bool]]:
    """Records, and whether a model may be measured on them: not on what judges said, since that is to be measured."""
    for record in feedback_records(project=project, filters=filters):
        yield record, isinstance(record, OutcomeRecord) or not is_by_judge(record.origin, record.annotator)
    for source in made:
        for derived in source.records(project):
            yield derived, source.in_test


def _leaks(tree: Path, heartbeat: _Pulse) -> dict[str, Any]:
    """What of the training split is in the others too."""

    def of(*splits: str) -> Iterator[FeedbackRecord]:
        found = chain.from_iterable(read_records(tree / f"{split}.jsonl.zst") for split in splits)
        return heartbeat.over(found, "looking for near-copies")

    return find_leaks(of("train"), of("validation", "test"))


class _Findings:
    """What one pass over the records finds out."""

    def __init__(self) -> None:
        self.census, self.reliability = Census(), Reliability()
        self.digests: list[tuple[str, bytes, bool]] = []  # task, digest, whether it may be in the test split

    def over(self, records: Iterator[tuple[FeedbackRecord, bool]]) -> Iterator[FeedbackRecord]:
        for record, in_test in records:
            self.census.add(record)
            self.reliability.add(record)
            self.digests.append((task_of(record), digest_of(record), in_test))
            yield record


def _write_splits(
    dataset_version: DatasetVersion, everything: Path, tree: Path, found: _Findings, heartbeat: _Pulse
) -> dict[str, Any]:
    wanted = dataset_version.filters["split"]
    reliability = found.reliability.shares()
    split_of = split_tasks(
        {task for task, *_ in found.digests},
        shares=tuple(wanted["shares"]),
        seed=wanted["seed"],
        test_tasks=wanted["test_tasks"],
    )
    sizes, kinds, usable = {}, Counter[str](), 0

    def of_split(split: str) -> Iterator[FeedbackRecord]:
        nonlocal usable
        records = heartbeat.over(read_records(everything), f"writing {split}")
        for record, (task, _, in_test) in zip(records, found.digests, strict=True):
            if split_of[task] != split or (split == "test" and not in_test):
                continue
            usable += is_usable_pair(record)
            if not isinstance(record, OutcomeRecord):
                record = replace(record, reliability=reliability.get(record.annotator))
            yield record

    for split in SPLITS:
        counts = write_records(tree / f"{split}.jsonl.zst", of_split(split))
        sizes[split] = sum(counts.values())
        kinds.update(counts)
    digests: dict[str, list[bytes]] = {split: [] for split in SPLITS}
    for task, digest, in_test in found.digests:
        if in_test or split_of[task] != "test":
            digests[split_of[task]].append(digest)
    return {
        "content_hash": content_hash(digests),
        "records": dict(sorted(kinds.items())),
        "splits": sizes,
        "tasks": {split: sum(1 for each in split_of.values() if each == split) for split in SPLITS},
        "annotators": found.census.people(reliability),
        "usable_pairs": usable,
    }
