"""The parts of the PPO loop, by hand."""

import pytest
import torch

from docs.examples import ppo


def test_generalised_advantages() -> None:
    """Two moves, then one: with gamma 1 and lambda 0.95, the errors of the values are 0.3 and 0.6; 1 - 0.2."""
    rewards = torch.tensor([[0.0, 1.0], [1.0, 9.0]])
    values = torch.tensor([[0.1, 0.4], [0.2, 7.0]])
    mask = torch.tensor([[1.0, 1.0], [1.0, 0.0]])
    found = ppo.generalised_advantages(rewards, values, mask)
    assert found.flatten().tolist() == pytest.approx([0.3 + 0.95 * 0.6, 0.6, 0.8, 0.0])


def test_the_ratio_is_clipped_where_that_lowers_the_gain() -> None:
    before = torch.zeros(1, 3)
    now = torch.tensor([[1.5, 1.5, 0.5]]).log()
    advantages = torch.tensor([[2.0, -2.0, 1.0]])
    loss = ppo.clipped_policy_loss(now, before, advantages, torch.ones(1, 3))
    assert float(loss) == pytest.approx(-(1.2 * 2.0 - 1.5 * 2.0 + 0.5) / 3)
    masked = ppo.clipped_policy_loss(now, before, advantages, torch.tensor([[1.0, 0.0, 0.0]]))
    assert float(masked) == pytest.approx(-2.4)
