"""Numbers worked out by hand."""

import math

import pytest
import torch

from workers.objectives.generative import (
    advantages,
    critique_loss,
    pair_loss,
    reinforce_loss,
    reward,
    run_loss,
)


def test_a_pair() -> None:
    right, wrong = torch.tensor([math.log(0.5), math.log(0.2)]), torch.tensor([math.log(0.25), math.log(0.6)])
    assert pair_loss(right, wrong).tolist() == pytest.approx([math.log(2), math.log(5)])
    smoothed = pair_loss(right, wrong, torch.tensor([0.1, 0.0]))
    assert smoothed.tolist() == pytest.approx([0.9 * math.log(2) + 0.1 * math.log(4), math.log(5)])


def test_a_run() -> None:
    better, other = torch.tensor([2.0]), torch.tensor([-1.0])
    expected = math.log1p(math.exp(-3.0))
    assert run_loss(better, other).tolist() == pytest.approx([expected])
    centred = run_loss(better, other, centring=0.5)
    assert centred.tolist() == pytest.approx([expected + 0.5 * 1.0])
    half = run_loss(better, other, torch.tensor([0.5]))
    assert half.tolist() == pytest.approx([0.5 * expected + 0.5 * math.log1p(math.exp(3.0))])


def test_a_critique_counts_by_its_mean_and_none_for_nothing() -> None:
    log_probs = torch.tensor([[-1.0, -3.0, -100.0], [-5.0, 0.0, 0.0]])
    mask = torch.tensor([[1.0, 1.0, 0.0], [0.0, 0.0, 0.0]])
    assert critique_loss(log_probs, mask).tolist() == [2.0, 0.0]


def test_advantages_are_within_a_prompt() -> None:
    found = advantages(torch.tensor([[1.0, 0.0, 0.0, 1.0], [1.0, 1.0, 1.0, 1.0]]))
    assert found.tolist() == [[1.0, -1.0, -1.0, 1.0], [0.0, 0.0, 0.0, 0.0]]


def test_what_lies_far_out_is_left_out() -> None:
    rewards = torch.zeros(1, 20)
    rewards[0, 0] = 1.0  # (1 - 0.05) / sqrt(0.05 * 0.95) = 4.36 standard deviations
    found = advantages(rewards)
    assert found[0, 0] == 0 and bool((found[0, 1:] < 0).all())
    assert advantages(rewards, most=5.0)[0, 0] == pytest.approx(0.95 / math.sqrt(0.05 * 0.95))


def test_gain_is_clipped_where_it_helps_and_ratios_before_they_explode() -> None:
    sampled = torch.zeros(3, 1)
    now = torch.tensor([[math.log(1.5)], [math.log(1.5)], [50.0]])
    worth = torch.tensor([1.0, -1.0, -1.0])
    mask = torch.ones(3, 1)
    loss = reinforce_loss(now, sampled, sampled, worth, mask, clip=0.2)
    assert loss.flatten().tolist() == pytest.approx([-1.2, 1.5, 1000.0], rel=1e-4)


def test_drifting_costs_and_padding_nothing() -> None:
    now, start = torch.tensor([[math.log(0.5), -9.0]]), torch.tensor([[math.log(0.25), 0.0]])
    mask = torch.tensor([[1.0, 0.0]])
    loss = reinforce_loss(now, now, start, torch.tensor([0.0]), mask, kl=2.0)
    # exp(d) - d - 1 with d = log(0.25) - log(0.5) = -log 2
    assert loss.flatten().tolist() == pytest.approx([2.0 * (0.5 + math.log(2) - 1), 0.0])


def test_a_token_counts_the_same_in_a_long_critique_as_in_a_short_one() -> None:
    now = torch.zeros(2, 4)
    mask = torch.tensor([[1.0, 0.0, 0.0, 0.0], [1.0, 1.0, 1.0, 1.0]])
    loss = reinforce_loss(now, now, now, torch.tensor([1.0, 1.0]), mask)
    assert loss.sum(-1).tolist() == pytest.approx([-1.0, -4.0])


def test_the_reward_of_a_verdict() -> None:
    found = reward(
        torch.tensor([1.0, 1.0, 0.0]), torch.tensor([1.0, 0.5, 1.0]), torch.tensor([1.0, 0.0, 1.0])
    )
    assert found.tolist() == [2.0, 1.25, 0.5]
