"""Which class of a step classifier is the good one."""

from collections.abc import Sequence

from workers.errors import RewardError
from workers.schema.import_options import ImportOptions

_GOOD = {"good", "correct", "positive", "pos", "+", "yes", "true", "right", "1", "label_1"}
_BAD = {"bad", "incorrect", "negative", "neg", "-", "no", "false", "wrong", "0", "-1", "label_0", "error"}


def step_classes(labels: Sequence[str], options: ImportOptions) -> tuple[str, ...]:
    """The names of the outputs in their order, with `good` and `bad` for those two. Of more than two classes the others
    keep their names. One output is the log-odds of `good`.

    Raises RewardError where it cannot be told which class is the good one.
    """
    if len(labels) == 1:
        return ("good",)
    named = ", ".join(labels)
    if options.good_label:
        good = _place(labels, options.good_label)
    else:
        found = [place for place, name in enumerate(labels) if name.lower() in _GOOD]
        if len(found) != 1:
            raise RewardError(
                f"the classes of the model are {named}, and which one is a good step cannot be told; name it with "
                "good_label.",
                pointer="/options/good_label",
            )
        (good,) = found
    others = [place for place in range(len(labels)) if place != good]
    bad = [place for place in others if len(labels) == 2 or labels[place].lower() in _BAD]
    if len(bad) != 1:
        raise RewardError(
            f"the classes of the model are {named}, and which one is a bad step cannot be told: name one of them "
            "'bad' in id2label of config.json.",
            pointer="/options/good_label",
        )
    names = {good: "good", bad[0]: "bad"}
    return tuple(names.get(place, name.lower()) for place, name in enumerate(labels))


def _place(labels: Sequence[str], wanted: str) -> int:
    if wanted in labels:
        return list(labels).index(wanted)
    if wanted.isdecimal() and int(wanted) < len(labels):
        return int(wanted)
    raise RewardError(
        f"good_label = {wanted!r} is no class of the model; it has {', '.join(labels)}.",
        pointer="/options/good_label",
    )
