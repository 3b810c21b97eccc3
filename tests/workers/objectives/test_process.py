"""Step labels: what is not known is masked, and a mask is never taken for a label."""

import pytest
import torch

from workers.objectives import Example
from workers.objectives.process import OBJECTIVE, UNKNOWN, known_labels, label_loss
from workers.schema import StepLabelRecord, Trajectory


@pytest.fixture
def labelled(make_trajectory):
    def make(steps=4, **fields) -> StepLabelRecord:
        one = make_trajectory("good")
        longer = Trajectory(steps=(one.steps[0], *[one.steps[1]] * steps), task=one.task)
        return StepLabelRecord(trajectory=longer, annotator="ann", **fields)

    return make


def test_after_the_first_error_nothing_is_known(labelled):
    assert known_labels(labelled(has_first_error=True, first_error=1), 4) == ["good", "bad", None, None]
    assert known_labels(labelled(has_first_error=True), 4) == ["good"] * 4
    assert known_labels(labelled(labels={2: "neutral"}), 4) == [None, None, "neutral", None]
    both = labelled(has_first_error=True, first_error=1, labels={3: "good"})
    assert known_labels(both, 4) == ["good", "bad", None, "good"]


def loss_of_one(logits: torch.Tensor, labels: torch.Tensor) -> torch.Tensor:
    return label_loss(logits, labels, torch.zeros_like(labels), 1)[0]


def test_the_loss_is_the_mean_over_known_steps():
    logits = torch.tensor([[[2.0, 0.0]], [[0.0, 1.0]], [[7.0, -7.0]]])
    got = loss_of_one(logits, torch.tensor([0, 1, UNKNOWN]))
    assert got.tolist() == pytest.approx([(0.126928 + 0.313262) / 2], abs=1e-6)


def test_a_masked_step_has_no_gradient():
    """Taken for a label, -100 would be the last class but 99 or an error; either way it would move something."""
    logits = torch.randn(3, 2, 3, dtype=torch.float64, requires_grad=True)
    loss_of_one(logits, torch.tensor([0, UNKNOWN, 2])).sum().backward()
    assert logits.grad[1].abs().max() == 0
    assert logits.grad[0].abs().max() > 0
    nothing = loss_of_one(logits, torch.full((3,), UNKNOWN))
    assert nothing.tolist() == [0.0, 0.0]


def test_each_trajectory_has_the_mean_of_its_own_steps():
    logits = torch.randn(6, 2, 3)
    labels, owners = torch.tensor([0, 2, UNKNOWN, UNKNOWN, 1, 1]), torch.tensor([0, 0, 0, 1, 2, 2])
    alone = [loss_of_one(logits[owners == owner], labels[owners == owner]) for owner in range(3)]
    together = label_loss(logits, labels, owners, 3)
    torch.testing.assert_close(together, torch.stack(alone))
    assert together[1].tolist() == [0.0, 0.0]


def test_gradients_are_those_of_finite_differences():
    logits = torch.randn(4, 2, 3, dtype=torch.float64, requires_grad=True)
    assert torch.autograd.gradcheck(lambda x: loss_of_one(x, torch.tensor([0, 2, UNKNOWN, 1])), (logits,))


def test_two_classes_are_binary_cross_entropy():
    logits = torch.tensor([[[1.5, 0.5]]])
    expected = torch.nn.functional.binary_cross_entropy_with_logits(torch.tensor([1.0]), torch.tensor([1.0]))
    torch.testing.assert_close(loss_of_one(logits, torch.tensor([0])), expected.unsqueeze(0))


def test_neutral_is_a_label_where_somebody_said_it(labelled):
    plain, three = labelled(labels={0: "good"}), labelled(labels={0: "neutral"})
    examples = [Example("process", record, (0,)) for record in (plain, three)]
    assert OBJECTIVE.labels(examples[:1]) == ("good", "bad")
    assert OBJECTIVE.labels(examples) == ("good", "neutral", "bad")


def test_steps_that_were_dropped_keep_the_others_in_place(labelled, recipe, batch):
    """Two of four steps are read, the last ones: their labels are those of steps 2 and 3."""
    record = labelled(labels={0: "bad", 1: "bad", 2: "good", 3: "bad"})
    logits = [[[0.0, 0.0]], [[2.0, 0.0]], [[0.0, 1.0]]]  # V_0's row first
    given = batch("process", [record], [(0.0, 0.0, 0.0)], labels=logits, dropped=2)
    one = OBJECTIVE(recipe(), given.examples)
    assert one(given).tolist()[0] == pytest.approx([(0.126928 + 0.313262) / 2], abs=1e-6)
    assert one.validation_metrics(given)["accuracy"].tolist() == [1.0, 1.0]


def test_labels_that_are_all_alike(labelled):
    examples = [Example("process", labelled(labels={0: "good", 1: "good"}), (0,))]
    assert (
        OBJECTIVE.validate_dataset(examples) == "every labelled step is good; label steps of another kind too"
    )
    assert OBJECTIVE.reject_reason(labelled(), None) == "of steps without labels"
