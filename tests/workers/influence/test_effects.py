"""What influence functions say, against training again without each example."""

import pytest
import torch
from torch import Tensor
from torch.nn import functional

from workers.influence.effects import effects

WIDTH = 4


def fitted(differences: Tensor, weights: Tensor, start: Tensor | None = None) -> Tensor:
    """Bradley-Terry without a prior, to the minimum."""
    found = (torch.zeros(WIDTH, dtype=torch.double) if start is None else start.clone()).requires_grad_(True)
    optimiser = torch.optim.LBFGS([found], max_iter=500, tolerance_grad=1e-10, line_search_fn="strong_wolfe")

    def step() -> Tensor:
        optimiser.zero_grad()
        loss = (weights * functional.softplus(-differences @ found)).sum() / weights.sum()
        loss.backward()
        return loss

    optimiser.step(step)
    return found.detach()


@pytest.fixture
def comparisons() -> Tensor:
    """[200, WIDTH]: what was chosen less what was not, by people who are often of another mind."""
    torch.manual_seed(3)
    differences = torch.randn(200, WIDTH, dtype=torch.double)
    truth = torch.tensor([1.0, -0.5, 0.3, 0.0], dtype=torch.double)
    chosen = torch.rand(200, dtype=torch.double) < torch.sigmoid(differences @ truth)
    return torch.where(chosen.unsqueeze(1), differences, -differences)


def losses(differences: Tensor, parameter: Tensor) -> Tensor:
    return functional.softplus(-differences @ parameter)


@pytest.mark.parametrize("at_once", [7, 200])
def test_it_is_what_training_without_each_would_say(comparisons, at_once: int) -> None:
    every = torch.ones(len(comparisons), dtype=torch.double)
    best = fitted(comparisons, every)
    asked = torch.tensor([0.4, 1.0, -0.2, 2.0], dtype=torch.double)
    truth = []
    for place in range(len(comparisons)):
        without = every.clone()
        without[place] = 0
        truth.append(float(asked @ best - asked @ fitted(comparisons, without, best)))
    parameter = best.clone().requires_grad_(True)
    parts = [lambda some=some: losses(some, parameter) for some in comparisons.split(at_once)]
    found = effects(parameter, asked @ parameter, parts, damping=1e-6)
    expected = torch.tensor(truth, dtype=torch.double)
    assert float(torch.corrcoef(torch.stack([found, expected]))[0, 1]) > 0.99
    # removing one of 200 moves the curvature a little, which the first order leaves out
    assert float((found @ expected) / (expected @ expected)) == pytest.approx(1.0, abs=0.08)


def test_what_has_nothing_to_do_with_it_moves_nothing(comparisons) -> None:
    parameter = fitted(comparisons, torch.ones(len(comparisons), dtype=torch.double)).requires_grad_(True)
    other = torch.ones(3, dtype=torch.double, requires_grad=True)
    parts = [lambda: losses(comparisons, parameter), lambda: (other * 2).repeat(2)]
    found = effects(parameter, parameter.sum(), parts)
    assert len(found) == 206 and bool((found[200:] == 0).all()) and bool((found[:200] != 0).any())


def test_some_stand_for_the_curvature_of_all(comparisons) -> None:
    parameter = fitted(comparisons, torch.ones(len(comparisons), dtype=torch.double)).requires_grad_(True)
    number = parameter[0]
    parts = [lambda: losses(comparisons, parameter)]
    whole = effects(parameter, number, parts)
    some = effects(
        parameter, parameter[0], parts, curvature_parts=[lambda: losses(comparisons[::2], parameter)]
    )
    assert float(torch.corrcoef(torch.stack([whole, some]))[0, 1]) > 0.97
    assert float(some.std() / whole.std()) == pytest.approx(1.0, abs=0.3)


def test_no_curvature_is_no_division_by_zero() -> None:
    parameter = torch.zeros(2, requires_grad=True)
    found = effects(parameter, parameter.sum(), [lambda: (parameter * 0).sum().repeat(3)])
    assert found.tolist() == [0.0, 0.0, 0.0]
