"""One optimiser step over several objectives."""

import pytest
import torch

from tests.workers.conftest import preference
from workers.models import renderer_of
from workers.objectives import collect_training
from workers.schema import OutcomeRecord, RankingRecord, ScoreRecord, StepLabelRecord
from workers.schema.recipe import parse_recipe
from workers.train.multi_objective import MultiObjectiveModule

pytestmark = pytest.mark.ml


def feedback(number: int) -> list:
    comparison = preference(number, choice=("a", "b", "tie", "both_bad")[number % 4])
    a, b = comparison.a, comparison.b
    return [
        comparison,
        OutcomeRecord(trajectory=a, success=number % 2 == 0),
        RankingRecord(trajectories=(a, b), ranks=(2, 1) if number % 2 else (1, 2), annotator="ann"),
        ScoreRecord(trajectory=b, criterion="polite", value=float(number % 5), scale=(0, 5), annotator="ann"),
        StepLabelRecord(trajectory=a, labels={0: ("good", "bad")[number % 2]}, annotator="ann"),
    ]


@pytest.fixture
def module() -> MultiObjectiveModule:
    recipe = parse_recipe({"objective": "joint", "backbone": "linear", "joint_weights": {"progress": 1.0}})
    records = [record for number in range(8) for record in feedback(number)]
    examples = collect_training(records, renderer_of(recipe), recipe)
    made = MultiObjectiveModule(recipe, examples, seed=0)
    made.model.backbone.prepare_with(examples.rendered, made.model.new_cache(0))
    return made.double().train()


def test_examples_that_are_chosen_once_give_the_loss_of_the_weights_of_each_pass(module) -> None:
    indices = range(3, len(module.examples), 2)
    chosen = module.choose(indices)
    for seed in range(3):
        weight = module.model.backbone.weight
        with torch.no_grad():
            weight.copy_(torch.randn(weight.shape, generator=torch.Generator().manual_seed(seed)))
        found = []
        for asked in (chosen, indices):
            module.zero_grad()
            loss = module(asked, len(indices))
            loss.backward()
            found.append((loss.detach(), weight.grad.clone()))
        torch.testing.assert_close(*found)
    losses = torch.stack([module.losses([index]).sum() for index in indices])
    torch.testing.assert_close(losses, module.losses(indices))
    torch.testing.assert_close(losses.mean(), found[0][0])


def test_nothing_that_is_kept_of_the_chosen_examples_depends_on_weights(module) -> None:
    chosen = module.choose(range(len(module.examples)))
    module(chosen, len(module.examples))
    for group in chosen.groups.values():
        kept = [value for value in group.constants.values() if isinstance(value, torch.Tensor)]
        assert kept or group.constants
        assert not any(tensor.requires_grad for tensor in kept)
