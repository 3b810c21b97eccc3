"""A trajectory's reward from the logits of a model's own code, to compare an import with."""

from torch import Tensor

from workers.importing.process_models import ProcessForm


def step_reward(logits: Tensor, form: ProcessForm) -> Tensor:
    """logits: [steps, classes], in the order of the model's classes. A scalar."""
    steps = step_values(logits, form)
    if form.aggregation == "last":
        return steps[-1]
    if form.aggregation == "min":
        return steps.amin()
    return steps.mean() if form.aggregation == "mean" else steps.prod()


def step_values(logits: Tensor, form: ProcessForm) -> Tensor:
    """[steps]: the probability of the good class, or its log-odds against the bad one."""
    classes = list(form.classes)
    if len(classes) == 1:
        odds = logits[:, 0]
        return odds.sigmoid() if form.step_value == "probability" else odds
    good, bad = classes.index("good"), classes.index("bad")
    if form.step_value == "probability":
        return logits.softmax(-1)[:, good]
    return logits[:, good] - logits[:, bad]
