"""TD(lambda): numbers by hand, those of stable-baselines3, and fixed points that are known."""

import math
from dataclasses import replace
from itertools import pairwise

import numpy as np
import pytest
import torch

from workers.errors import RewardError
from workers.models.states import States
from workers.objectives import Example
from workers.objectives.td import OBJECTIVE, discounted_return, expectile_loss, lambda_returns
from workers.schema import OutcomeRecord, Part, Step, Task, Trajectory
from workers.schema.recipe import Recipe, parse_recipe
from workers.schema.recipe_keys import parse_new_recipe


def record(*rewards, success: bool = True, reward=None) -> OutcomeRecord:
    """One agent step for each of `rewards`."""
    steps = tuple(Step(source="agent", message=(Part(text="go"),), reward=reward) for reward in rewards)
    return OutcomeRecord(
        trajectory=Trajectory(steps=steps, task=Task(id="t")), success=success, reward=reward
    )


class TestReturns:
    def test_by_hand(self):
        """U = 1, 2, 4 and R = 8, lambda = 1/4: 8; 3/4 * 4 + 1/4 * 8 = 5; 3/4 * 2 + 1/4 * 5 = 2.75."""
        values = torch.tensor([[[1.0], [2.0], [4.0]]])
        assert lambda_returns(values, torch.tensor([8.0]), 0.25).flatten().tolist() == [2.75, 5.0, 8.0]
        assert lambda_returns(values, torch.tensor([8.0]), 1.0).flatten().tolist() == [8.0] * 3
        assert lambda_returns(values, torch.tensor([8.0]), 0.0).flatten().tolist() == [2.0, 4.0, 8.0]

    @pytest.mark.parametrize(("discount", "td_lambda"), [(1.0, 0.95), (0.9, 0.8), (0.5, 0.0), (0.7, 1.0)])
    def test_are_those_of_stable_baselines3(self, discount, td_lambda):
        """Its V_t is of what is still to come, ours with what was earned: U_t = c_t + gamma^t V_t, and U_T = R."""
        buffers = pytest.importorskip("stable_baselines3.common.buffers")
        spaces = pytest.importorskip("gymnasium.spaces")
        random = np.random.default_rng(0)
        steps, heads = 6, 3
        buffer = buffers.RolloutBuffer(
            steps,
            spaces.Box(-1, 1, (1,)),
            spaces.Discrete(2),
            device="cpu",
            gae_lambda=td_lambda,
            gamma=discount,
            n_envs=heads,
        )
        buffer.rewards = np.repeat(random.normal(size=(steps, 1)), heads, 1).astype(np.float32)
        buffer.values = random.normal(size=(steps, heads)).astype(np.float32)
        buffer.episode_starts[0] = 1
        buffer.compute_returns_and_advantage(torch.zeros(heads), np.ones(heads))

        powers = discount ** np.arange(steps + 1)[:, None]
        earned = np.concatenate([np.zeros((1, heads)), np.cumsum(powers[:-1] * buffer.rewards, 0)])
        final = discounted_return(record(*buffer.rewards[:, 0].tolist(), success=False), discount)
        assert final == pytest.approx(earned[-1, 0], abs=1e-5)
        values = earned.copy()
        values[:-1] += powers[:-1] * buffer.values
        got = lambda_returns(torch.tensor(values[None]), torch.tensor([final]), td_lambda)[0].numpy()
        np.testing.assert_allclose(got[:-1], earned[:-1] + powers[:-1] * buffer.returns, atol=1e-5)

    @pytest.mark.parametrize(
        ("given", "discount", "expected"),
        [
            (record(None, None, None), 0.5, 0.25),  # success after three steps
            (record(None, None, success=False), 0.5, 0.0),
            (record(None, None, reward=3.0), 0.5, 1.5),
            (record(1.0, None, -2.0, success=False), 0.5, 0.5),
            (record(1.0, None, 2.0, success=True), 1.0, 4.0),  # and the outcome after them
            (record(1.0, None, 2.0, reward=0.5), 1.0, 3.5),
            (record(1.0, None, 2.0, reward=3.0), 1.0, 3.0),  # their sum: not counted twice
        ],
    )
    def test_of_a_record(self, given, discount, expected):
        assert discounted_return(given, discount) == pytest.approx(expected)

    def test_a_reward_of_an_observation_is_of_the_step_before_it(self):
        seen = Step(source="environment", message=(Part(text="seen"),), reward=4.0)
        act = Step(source="agent", message=(Part(text="go"),))
        trajectory = Trajectory(steps=(seen, act, seen, act), task=Task(id="t"))
        given = OutcomeRecord(trajectory=trajectory, success=False)
        assert discounted_return(given, 0.5) == 4.0  # what came before the first step is not the agent's


class TestExpectileLoss:
    def test_by_hand(self):
        """wanted above by 2: 2 * 0.9 * 4; below by 2: 2 * 0.1 * 4."""
        values, wanted = torch.tensor([1.0, 5.0]), torch.tensor([3.0, 3.0])
        assert expectile_loss(values, wanted, 0.9).tolist() == pytest.approx([7.2, 0.8])
        assert expectile_loss(values, wanted, 0.5).tolist() == [4.0, 4.0]

    @pytest.mark.parametrize("expectile", [0.1, 0.5, 0.9])
    def test_gradients_are_those_of_finite_differences(self, expectile):
        values = torch.randn(4, 2, dtype=torch.float64, requires_grad=True)
        wanted = torch.randn(4, 2, dtype=torch.float64)
        assert torch.autograd.gradcheck(lambda given: expectile_loss(given, wanted, expectile), (values,))


class TestLoss:
    def loss_of(self, recipe, batch, values, records, **fields):
        given = batch("td", records, values)
        objective = OBJECTIVE(recipe(objective="td", **fields), given.examples)
        return objective, given, objective(given)

    def test_by_hand(self, recipe, batch):
        """Returns 1 and 0: mean 1/2, spread 1/2, so that R is 1 and -1 to the model. Both have 3 values, lambda = 0:
        (0 - 1)^2 + (1 - 3)^2 + (3 - 1)^2 = 9 and (0 - 0)^2 + (0 - 0)^2 + (0 + 1)^2 = 1, over 3."""
        records = [record(None, None), record(None, None, success=False)]
        objective, given, loss = self.loss_of(
            recipe, batch, [(0.0, 1.0, 3.0), (0.0, 0.0, 0.0)], records, td_lambda=0.0
        )
        assert (objective.mean, objective.spread) == (0.5, 0.5)
        assert loss.flatten().tolist() == pytest.approx([3.0, 1 / 3])
        # Against the returns: 1 + 0 + 4 and 1 + 1 + 1, over 3.
        assert objective.validation_metrics(given)["loss"].tolist() == pytest.approx([5 / 3, 1.0])

    def test_no_gradient_passes_through_what_a_value_is_led_by(self, recipe, batch):
        """Of one step, led by values 1 and 3: -2 (1 - 0), -2 (3 - 1), -2 (1 - 3), over 3."""
        records = [record(None, None), record(None, None, success=False)]
        _, given, loss = self.loss_of(
            recipe, batch, [(0.0, 1.0, 3.0), (0.0, 0.0, 0.0)], records, td_lambda=0.0
        )
        loss[0].sum().backward()
        gradient = given.outputs.values.flat.grad.flatten()
        assert gradient[:3].tolist() == pytest.approx([-2 / 3, -4 / 3, 4 / 3])
        assert gradient[3:].tolist() == [0.0] * 3

    def test_trajectories_of_other_lengths_do_not_touch_each_other(self, recipe, batch):
        """Together as alone: what stands before the first value of the shorter ones is not read."""
        records = [record(None), record(None, None, None, success=False), record(None, None)]
        values = [(0.5, 2.0), (1.0, -1.0, 0.25, 0.5), (0.0, 3.0, -2.0)]
        objective, _, loss = self.loss_of(recipe, batch, values, records, td_lambda=0.7, expectile=0.8)
        for place, one in enumerate(records):
            alone = objective(batch("td", [one], [values[place]]))
            torch.testing.assert_close(alone[0], loss[place])

    def test_heads_are_led_by_each_other(self, recipe, batch):
        given = batch("td", [record(None), record(None, success=False)], [(0.0, 0.0), (0.0, 0.0)], heads=2)
        flat = torch.tensor([[0.0, 0.0], [1.0, 5.0], [0.0, 0.0], [0.0, 0.0]], dtype=torch.float64)
        given = replace(given, outputs=replace(given.outputs, values=States(flat, (1, 1))))
        loss = OBJECTIVE(recipe(objective="td", td_lambda=0.0), given.examples)(given)
        # R is 1: of the first head (5 - 0)^2 + (1 - 1)^2, of the second (1 - 0)^2 + (1 - 5)^2, over 2.
        assert loss[0].tolist() == pytest.approx([12.5, 8.5])

    def test_a_linear_model_learns_from_the_returns(self, recipe, batch):
        objective, _, _ = self.loss_of(
            recipe, batch, [(0.0, 1.0), (0.0, 0.0)], [record(None), record(None, success=False)]
        )
        assert objective.td_lambda == 0.95
        linear = recipe(objective="td", backbone="linear")
        assert OBJECTIVE(linear, [Example("td", record(None), (0,))]).td_lambda == 1.0


class TestFixedPoints:
    """Values by state, learnt from trajectories by plain gradient descent."""

    def learnt(self, recipe, batch, episodes, **fields) -> dict[str, float]:
        """episodes: (states, reward): the state before the first step, and after each; a state is its name."""
        records = [record(*[None] * (len(states) - 1), reward=reward) for states, reward in episodes]
        given = batch("td", records, [[0.0] * len(states) for states, _ in episodes])
        names = sorted({state for states, _ in episodes for state in states})
        place = torch.tensor([names.index(state) for states, _ in episodes for state in states])
        objective = OBJECTIVE(recipe(objective="td", **fields), given.examples)
        table = torch.zeros(len(names), 1, dtype=torch.float64, requires_grad=True)
        for _ in range(800):
            outputs = replace(given.outputs, values=given.outputs.values.of(table[place]))
            (gradient,) = torch.autograd.grad(objective(replace(given, outputs=outputs)).sum(), table)
            with torch.no_grad():
                table -= 0.15 * gradient
        return {
            name: objective.mean + objective.spread * float(value)
            for name, value in zip(names, table.detach().flatten(), strict=True)
        }

    @pytest.mark.parametrize(("td_lambda", "first"), [(0.0, 0.75), (1.0, 0.0)])
    def test_you_are_the_predictor(self, recipe, batch, td_lambda, first):
        """Sutton and Barto (2018), example 6.4: batch TD(0) finds V(A) = 3/4, batch Monte Carlo V(A) = 0; both find
        V(B) = 3/4."""
        episodes = [("AB0", 0.0), *[("B1", 1.0)] * 6, ("B0", 0.0)]
        found = self.learnt(recipe, batch, episodes, td_lambda=td_lambda)
        assert found == pytest.approx({"A": first, "B": 0.75, "0": 0.0, "1": 1.0}, abs=1e-4)

    def test_a_random_walk(self, recipe, batch):
        """Sutton and Barto (2018), example 6.2: of five states in a row the values are 1/6 to 5/6. Every step once from
        every state on either side, as often as the walk takes it."""
        walks = [("CBA0", 0), ("CDE1", 1), ("CBCBA0", 0), ("CDCDE1", 1), ("CBCDE1", 1), ("CDCBA0", 0)]
        walks += [("CBABA0", 0), ("CDEDE1", 1)]
        steps = [pair for states, _ in walks for pair in pairwise(states)]
        share = {
            state: np.mean(
                [
                    after > state if after in "ABCDE" else after == "1"
                    for before, after in steps
                    if before == state
                ]
            )
            for state in "ABCDE"
        }
        found = self.learnt(
            recipe, batch, [(states, float(reward)) for states, reward in walks], td_lambda=0.0
        )
        # The values of the chain with the shares that these walks have: V = P V + (to the right end).
        system, right = np.eye(5), np.zeros(5)
        for row, state in enumerate("ABCDE"):
            for column, probability in ((row - 1, 1 - share[state]), (row + 1, share[state])):
                if 0 <= column < 5:
                    system[row, column] -= probability
                elif column == 5:
                    right[row] += probability
        expected = dict(zip("ABCDE", np.linalg.solve(system, right), strict=True)) | {"0": 0.0, "1": 1.0}
        assert found == pytest.approx(expected, abs=1e-3)
        assert [found[state] for state in "ABCDE"] == sorted(found[state] for state in "ABCDE")

    @pytest.mark.parametrize("td_lambda", [0.0, 0.5, 1.0])
    def test_successes_alone_have_values_by_how_soon_they_come(self, recipe, batch, td_lambda):
        """From A half succeed with one step and half with two, by B; discount 1/2: U(1) = 1, U(B) = U(2) = 1/2, U(A) =
        3/4. In the values of what is to come: V(B) = 1, V(A) = (1 + 1/2 V(B)) / 2."""
        episodes = [("A1", 1.0), ("AB2", 1.0)]
        found = self.learnt(recipe, batch, episodes, td_lambda=td_lambda, discount=0.5)
        assert found == pytest.approx({"A": 0.75, "B": 0.5, "1": 1.0, "2": 0.5}, abs=1e-4)

    @pytest.mark.parametrize(("td_lambda", "first"), [(0.0, 11 / 12), (1.0, 3 / 4)])
    def test_successes_alone_by_a_state_that_others_leave_sooner(self, recipe, batch, td_lambda, first):
        """Discount 1/2. U(B) = (1/2 + 1 + 1) / 3 = 5/6. From A half succeed at once, and half by B: bootstrapping
        expects of B what all found there, (1 + 5/6) / 2; Monte Carlo what those from A found, (1 + 1/2) / 2."""
        episodes = [("AB3", 1.0), ("B2", 1.0), ("B2", 1.0), ("A1", 1.0)]
        found = self.learnt(recipe, batch, episodes, td_lambda=td_lambda, discount=0.5)
        expected = {"A": first, "B": 5 / 6, "1": 1.0, "2": 1.0, "3": 0.5}
        assert found == pytest.approx(expected, abs=1e-4)

    @pytest.mark.parametrize("expectile", [0.5, 0.9])
    def test_an_expectile_takes_the_better_continuation(self, recipe, batch, expectile):
        """Half of the continuations succeed: the expectile of 0 and 1 is the expectile itself."""
        episodes = [("A1", 1.0), ("A0", 0.0)]
        found = self.learnt(recipe, batch, episodes, td_lambda=0.0, expectile=expectile)
        assert found == pytest.approx({"A": expectile, "0": 0.0, "1": 1.0}, abs=1e-4)

    def test_an_expectile_does_not_flatter_what_has_ended(self, recipe, batch):
        episodes = [("AB", 1.0), ("AB", 0.0)]
        found = self.learnt(recipe, batch, episodes, td_lambda=0.0, expectile=0.9)
        assert found == pytest.approx({"A": 0.5, "B": 0.5}, abs=1e-4)


class TestBadInput:
    def test_a_reward_that_is_no_number(self, recipe):
        for bad in (record(math.nan), record(None, reward=math.inf)):
            assert OBJECTIVE.reject_reason(bad, recipe()) == "with a reward that is no finite number"
        assert OBJECTIVE.reject_reason(record(1.0), recipe()) is None

    def test_outcomes_that_are_all_alike(self):
        alike = [
            Example("td", record(1.0, 1.0, success=False), (0,)),
            Example("td", record(None, reward=2.0), (1,)),
        ]
        problem = OBJECTIVE.validate_dataset(alike, Recipe())
        assert problem is not None and problem.startswith("the rewards of all 2 trajectories add up to 2;")
        assert "or set `discount` below 1 where some took fewer steps" in problem
        other = Example("td", record(None, success=False), (2,))
        assert OBJECTIVE.validate_dataset([*alike, other], Recipe()) is None

    def test_successes_alone_are_told_apart_by_a_discount(self):
        """After equally many steps they are not."""
        soon, late = (Example("td", record(*[None] * count), (count,)) for count in (1, 3))
        discounted = Recipe(objective="td", discount=0.9)
        assert OBJECTIVE.validate_dataset([soon, late], Recipe()) is not None
        assert OBJECTIVE.validate_dataset([soon, late], discounted) is None
        problem = OBJECTIVE.validate_dataset([late, late], discounted)
        assert problem == (
            "the rewards of all 2 trajectories add up to 0.81, discounted by 0.9; import some that did better or "
            "worse, or took fewer steps, and freeze again"
        )

    @pytest.mark.parametrize(
        ("values", "pointer", "words"),
        [
            ({"objective": "td", "aggregation": "min"}, "/aggregation", "use 'value'"),
            (
                {"objective": "joint", "joint_weights": {"td": 1.0}, "aggregation": "sum"},
                "/aggregation",
                "'value'",
            ),
            ({"objective": "td", "conditioned": ["goal"], "hindsight": 2}, "/hindsight", "leave it out"),
            ({"objective": "td", "td_lambda": 1.5}, "/td_lambda", "<= 1"),
            ({"objective": "td", "discount": 0.0}, "/discount", "> 0"),
            ({"objective": "td", "expectile": 1.0}, "/expectile", "< 1"),
            ({"objective": "progress", "discount": 0.9}, "/discount", "objective = 'td'"),
            ({"objective": "td", "backbone": "linear", "td_lambda": 0.5}, "/td_lambda", "another backbone"),
        ],
    )
    def test_keys_of_a_recipe(self, values, pointer, words):
        with pytest.raises(RewardError) as caught:
            parse_new_recipe(values)
        assert caught.value.pointer == pointer and words in caught.value.message
        assert parse_recipe({"objective": "td"}).aggregation == "value"
