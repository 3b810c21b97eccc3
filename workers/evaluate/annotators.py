"""One annotator and the model against the same answer: what most of the other annotators chose on the same item."""

from collections import Counter, defaultdict
from collections.abc import Sequence
from typing import Any

from workers.evaluate.bootstrap import difference_interval, mean_interval, task_count
from workers.evaluate.preference import Prediction, correctness

_MIRRORED = {"a": "b", "b": "a"}


def annotator_report(found: Sequence[Prediction]) -> dict[str, Any] | None:
    """{leave_one_out, interval, model, model_interval, difference, difference_interval, tasks, n}; None if n is 0.

    Over the choices of one trajectory over the other by an annotator on an item that at least three annotators judged,
    where more of the other annotators chose one trajectory than the other (their ties and both-bad choose neither).
    leave_one_out: the share of these choices that agree with the others; model: of the model on the same choices, two
    equal rewards half right; difference: model minus annotator, paired. So both face one target with two values and the
    same noise: a perfect model is above an annotator by that annotator's own errors only. One annotator's several
    choices on an item count as the last. Judges are no annotators: the reference is what people reach.
    """
    items: dict[tuple[Any, ...], dict[str, Prediction]] = defaultdict(dict)
    for prediction in found:
        record = prediction.record
        if record.origin != "judge":
            sides = sorted((record.a.content_hash, record.b.content_hash))
            key = (record.a.task.id, record.criterion, record.item, *sides)
            items[key][record.annotator] = prediction
    people: list[float] = []
    model: list[float] = []
    tasks: list[str | None] = []
    for by_annotator in items.values():
        if len(by_annotator) < 3:
            continue
        choices = Counter(_oriented_choice(prediction) for prediction in by_annotator.values())
        for prediction in by_annotator.values():
            own = _oriented_choice(prediction)
            lead = choices["a"] - choices["b"]
            lead_of_others = lead - (1 if own == "a" else -1 if own == "b" else 0)
            if prediction.is_strict and lead_of_others:
                agrees = (own == "a") == (lead_of_others > 0)
                people.append(float(agrees))
                model.append(correctness(prediction.margin if agrees else -prediction.margin))
                tasks.append(prediction.record.a.task.id)
    if not people:
        return None
    share, interval = mean_interval(people, tasks)
    model_share, model_interval = mean_interval(model, tasks)
    difference, between = difference_interval(model, people, tasks)
    return {
        "leave_one_out": share,
        "interval": interval,
        "model": model_share,
        "model_interval": model_interval,
        "difference": difference,
        "difference_interval": between,
        "tasks": task_count(tasks),
        "n": len(people),
    }


def _oriented_choice(prediction: Prediction) -> str:
    """The choice as if the trajectory with the smaller content hash were shown as `a`."""
    record = prediction.record
    is_mirrored = record.a.content_hash > record.b.content_hash
    return _MIRRORED.get(record.choice, record.choice) if is_mirrored else record.choice
