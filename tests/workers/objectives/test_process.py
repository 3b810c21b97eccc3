"""Step labels: what is not known is masked, and a mask is never taken for a label."""

import pytest
import torch

from workers.models import renderer_of
from workers.objectives import Example, collect, collect_training
from workers.objectives.process import OBJECTIVE, UNKNOWN, known_labels, label_loss, step_pair_loss
from workers.schema import PreferenceRecord, StepLabelRecord, Trajectory
from workers.schema.recipe import Recipe, parse_recipe


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
        OBJECTIVE.validate_dataset(examples, Recipe())
        == "every labelled step is good; label steps of another kind too"
    )
    assert OBJECTIVE.reject_reason(labelled(), None) == "of steps without labels"


def test_the_loss_of_a_step_pair_by_hand():
    """log(1 + e^-d): log 2 at equal values, 0.126928 where the corrected step is 2 higher, 2.126928 the other way."""
    corrected, original = torch.tensor([[0.5, 1.0], [-1.0, 0.0]]), torch.tensor([[0.5, -1.0], [1.0, 0.0]])
    got = step_pair_loss(corrected, original)
    expected = [[0.693147, 0.126928], [2.126928, 0.693147]]
    assert got.flatten().tolist() == pytest.approx([*expected[0], *expected[1]], abs=1e-6)


def test_a_step_pair_reads_the_ends_and_labels_read_the_rest(labelled, recipe, batch, make_trajectory):
    """Logits (good, bad). Corrected: 1.5 - 0.5, original: 0 - 1, so d = 2. What is before the ends does not count."""
    pair = PreferenceRecord(a=make_trajectory("good"), b=make_trajectory("bad"), choice="a", annotator="ann")
    record = labelled(labels={0: "good", 1: "bad"}, steps=2)
    rows = [[9.0, -9.0], [1.5, 0.5]], [[-9.0, 9.0], [0.0, 1.0]], [[7.0, 7.0], [2.0, 0.0], [1.0, 0.0]]
    logits = [[row] for trajectory in rows for row in trajectory]
    given = batch("process", [pair, record], [(0.0, 0.0), (0.0, 0.0), (0.0, 0.0, 0.0)], labels=logits)
    objective = OBJECTIVE(recipe(), given.examples)
    assert objective.names == ("good", "bad")
    assert objective(given).flatten().tolist() == pytest.approx(
        [0.126928, (0.126928 + 1.313262) / 2], abs=1e-6
    )
    assert objective.validation_metrics(given)["accuracy"].tolist() == [1.0, 0.0]


def test_a_step_pair_among_three_labels_leaves_neutral_alone(labelled, recipe, batch, make_trajectory):
    pair = PreferenceRecord(a=make_trajectory("good"), b=make_trajectory("bad"), choice="a", annotator="ann")
    three = Example("process", labelled(labels={0: "neutral", 1: "bad"}), (0,))
    logits = [[[0.0, 5.0, 0.0]], [[1.5, 5.0, 0.5]], [[0.0, 5.0, 0.0]], [[0.0, -5.0, 1.0]]]
    given = batch("process", [pair], [(0.0, 0.0), (0.0, 0.0)], labels=logits)
    objective = OBJECTIVE(recipe(), [three, *given.examples])
    assert objective.names == ("good", "neutral", "bad")
    assert objective(given).tolist() == [[pytest.approx(0.126928, abs=1e-6)]]


def test_only_training_data_have_step_pairs_and_only_where_the_recipe_asks(labelled):
    records = [
        labelled(labels={0: "good", 1: "bad"}, corrections={1: "fine", 2: "good"}),
        labelled(labels={0: "bad"}, corrections={1: "fine"}),
    ]
    plain = parse_recipe({"objective": "process", "backbone": "linear"})
    asked = parse_recipe({"objective": "process", "backbone": "linear", "correction_weight": 0.5})
    without = collect_training(records, renderer_of(plain), plain)
    assert (len(without), without.corrections) == (2, {"pairs": 0, "skipped": {}})
    assert len(collect(records, renderer_of(asked), asked)) == 2
    found = collect_training(records, renderer_of(asked), asked)
    assert found.corrections == {
        "pairs": 1,
        "skipped": {"that another record makes too": 1, "that say what the step was": 1},
    }
    assert [(example.weight, example.source) for example in found.items[2:]] == [(0.5, records[0])]
    joint = parse_recipe({"objective": "joint", "joint_weights": {"process": 0}, "correction_weight": 0.5})
    assert len(collect(records, renderer_of(plain), joint, with_corrections=True)) == 0
