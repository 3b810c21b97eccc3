"""What one annotator reaches against the majority of the others: a reference for a model, not a ceiling."""

from collections import Counter, defaultdict
from collections.abc import Iterable
from typing import Any

from workers.evaluate.bootstrap import mean_interval
from workers.schema import PreferenceRecord

_MIRRORED = {"a": "b", "b": "a"}


def leave_one_out(records: Iterable[PreferenceRecord]) -> dict[str, Any] | None:
    """{leave_one_out, interval, n}, over items that at least three annotators judged; None if there are none.

    A judgement counts where the others have one most frequent choice. One annotator's several choices on an
    item count as his last. Judges are no annotators: the reference is what people reach.
    """
    items: dict[tuple[Any, ...], dict[str, str]] = defaultdict(dict)
    for record in records:
        if record.origin == "judge":
            continue
        first, second = record.a.content_hash, record.b.content_hash
        turned = first > second
        key = (record.a.task.id, record.criterion, record.item, *sorted((first, second)))
        choice = _MIRRORED.get(record.choice, record.choice) if turned else record.choice
        items[key][record.annotator] = choice
    agrees: list[float] = []
    tasks: list[str | None] = []
    for key, choices in items.items():
        if len(choices) < 3:
            continue
        for annotator, choice in choices.items():
            others = Counter(other for name, other in choices.items() if name != annotator).most_common(2)
            if len(others) == 1 or others[0][1] > others[1][1]:
                agrees.append(float(choice == others[0][0]))
                tasks.append(key[0])
    if not agrees:
        return None
    mean, interval = mean_interval(agrees, tasks)
    return {"leave_one_out": mean, "interval": interval, "n": len(agrees)}
