"""What is in a dataset version: its hash, its counts, and how reliable each annotator is."""

import hashlib
import json
from collections import Counter, defaultdict
from typing import Any

from apps.annotation.models import is_by_judge
from workers.schema import FeedbackRecord, OutcomeRecord, PreferenceRecord, Trajectory
from workers.schema.records import KIND_OF, trajectories_of
from workers.schema.storage import to_builtins

_MIN_JUDGES = 3  # below that the others have no majority


def task_of(record: FeedbackRecord) -> str:
    return trajectories_of(record)[0].task.id


def is_usable_pair(record: FeedbackRecord) -> bool:
    """A comparison a preference objective can learn from: two different contents, judged overall."""
    return (
        isinstance(record, PreferenceRecord)
        and record.criterion is None
        and record.a.content_hash != record.b.content_hash
    )


def digest_of(record: FeedbackRecord) -> bytes:
    """SHA-256 of what the record says; of a trajectory its task, what was done in it and what came of it.

    Left out is what depends on the installation (row ids) or on the other records (reliability).
    """
    content: dict[str, Any] = {"kind": KIND_OF[type(record)]}
    for name in record.__struct_fields__:
        value = getattr(record, name)
        if isinstance(value, Trajectory):
            content[name] = _identity(value)
        elif name == "trajectories":
            content[name] = [_identity(one) for one in value]
        elif name != "reliability":
            content[name] = to_builtins(value)
    return hashlib.sha256(_encoded(content)).digest()


def content_hash(digests: dict[str, list[bytes]]) -> str:
    """SHA-256 over the splits and the records in them, in whatever order they came."""
    total = hashlib.sha256()
    for split in sorted(digests):
        total.update(f"{split} {len(digests[split])}\n".encode())
        for digest in sorted(digests[split]):
            total.update(digest)
    return total.hexdigest()


class Reliability:
    """How often each annotator chooses what most of the others chose, where three annotators or more compared.

    Judges are not among them: what they agree with each other on says nothing of people.
    """

    def __init__(self) -> None:
        self._choices: dict[tuple[str, str | None], dict[str, str]] = defaultdict(dict)

    def add(self, record: FeedbackRecord) -> None:
        if not isinstance(record, PreferenceRecord) or record.item is None:
            return
        if not is_by_judge(record.origin, record.annotator):
            self._choices[(record.item, record.criterion)][record.annotator] = record.choice

    def shares(self) -> dict[str, float]:
        """Of the annotators of whom it can be said; a comparison without a majority among the others says nothing."""
        agreed, judged = Counter[str](), Counter[str]()
        for choices in self._choices.values():
            if len(choices) < _MIN_JUDGES:
                continue
            for annotator, choice in choices.items():
                others = Counter(other for name, other in choices.items() if name != annotator).most_common(2)
                if len(others) == 2 and others[0][1] == others[1][1]:
                    continue
                judged[annotator] += 1
                agreed[annotator] += choice == others[0][0]
        return {annotator: agreed[annotator] / n for annotator, n in judged.items()}


class Census:
    """Counts of a dataset version's records."""

    def __init__(self) -> None:
        self.annotators = Counter[str]()
        self.origins: dict[str, set[str]] = defaultdict(set)

    def add(self, record: FeedbackRecord) -> None:
        if not isinstance(record, OutcomeRecord):
            self.annotators[record.annotator] += 1
            self.origins[record.annotator].add(record.origin)

    def people(self, reliability: dict[str, float]) -> dict[str, dict[str, Any]]:
        return {
            name: {"records": n, "reliability": reliability.get(name), "origins": sorted(self.origins[name])}
            for name, n in sorted(self.annotators.items())
        }


def _identity(trajectory: Trajectory) -> list[Any]:
    return [trajectory.content_hash, trajectory.agent, trajectory.reward, trajectory.success]


def _encoded(content: Any) -> bytes:
    return json.dumps(content, ensure_ascii=False, sort_keys=True, separators=(",", ":")).encode(
        "utf-8", "surrogatepass"
    )
