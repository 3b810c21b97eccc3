"""Inverse soft Q-learning: numbers by hand, the paper's loss, and rewards of a process that are known."""

import numpy as np
import pytest
import torch
from msgspec.structs import replace

from workers.errors import RewardError
from workers.models.reward_model import Outputs, aggregate
from workers.models.states import States
from workers.objectives import Example, ObjectiveBatch
from workers.objectives.inverse_q import OBJECTIVE, inverse_q_loss, soft_values
from workers.schema import DemonstrationRecord, OutcomeRecord, Part, Step, Task, Trajectory
from workers.schema.recipe import Recipe, parse_recipe
from workers.schema.recipe_keys import parse_new_recipe
from workers.schema.step_alternatives import AlternativeSteps
from workers.text import Numbers

FEATURES = {"objective": "inverse_q", "backbone": "features", "action_numbers": 1}


def trajectory(*rows: tuple[float, ...], speakers: str = "", task: str = "t") -> Trajectory:
    names = [*speakers] or [None] * len(rows)
    steps = tuple(
        Step(source="agent", features=row, speaker=name) for row, name in zip(rows, names, strict=True)
    )
    return Trajectory(steps=steps, task=Task(id=task))


def demonstrated(*rows: tuple[float, ...], **fields: str) -> DemonstrationRecord:
    return DemonstrationRecord(trajectory=trajectory(*rows, **fields), annotator="ann")


class TabularModel:
    """Q by state and action, of trajectories whose steps are (state, action); and gamma V of the state."""

    def __init__(self, records, recipe: Recipe) -> None:
        self.rendered: list[Numbers] = []
        pool = [record.trajectory for record in records]
        alternatives = AlternativeSteps(pool, most=8, action_numbers=1, is_memoryless=True)
        examples = []
        for record in records:
            own = self._index(record.trajectory)
            found = tuple(
                (each.actions, tuple(map(self._index, each.trajectories)))
                for each in alternatives.of(record.trajectory)
            )
            others = (index for _, indices in found for index in indices)
            examples.append(Example("inverse_q", record, (own, *others), None, found))
        self.keys = sorted({row for rendered in self.rendered for row in rendered.rows})
        self.place = torch.tensor([
            place
            for rendered in self.rendered
            for place in (0, *(1 + self.keys.index(row) for row in rendered.rows))
        ])  # fmt: skip
        self.table = torch.zeros(1 + len(self.keys), 1, 2, dtype=torch.double, requires_grad=True)
        self.examples, self.objective = examples, OBJECTIVE(recipe, examples)

    def _index(self, content: Trajectory) -> int:
        rows = tuple(tuple(step.features or ()) for step in content.steps)
        self.rendered.append(Numbers(rows, len(rows)))
        return len(self.rendered) - 1

    def losses(self, table: torch.Tensor) -> torch.Tensor:
        labels = States(table[self.place], tuple(len(rendered.rows) for rendered in self.rendered))
        values = labels.of(labels.flat[..., 0] - labels.flat[..., 1])
        outputs = Outputs(
            values, labels, aggregate(values, "sum"), {}, "sum", torch.zeros(len(self.rendered), 1)
        )
        rows = {index: index for index in range(len(self.rendered))}
        return self.objective(ObjectiveBatch(self.examples, outputs, rows, self.rendered))

    def fit(self) -> dict[tuple[float, float], tuple[float, float]]:
        """By state and action, Q and the reward."""
        optimiser = torch.optim.LBFGS(
            [self.table],
            max_iter=500,
            tolerance_grad=1e-10,
            tolerance_change=1e-13,
            line_search_fn="strong_wolfe",
        )

        def closure() -> torch.Tensor:
            optimiser.zero_grad()
            loss = self.losses(self.table).sum()
            loss.backward()
            return loss

        optimiser.step(closure)
        action, state = self.table.detach()[1:, 0].unbind(-1)
        return {
            key: (float(q), float(q - after)) for key, q, after in zip(self.keys, action, state, strict=True)
        }


class TestLoss:
    def test_by_hand(self):
        """Q = 0 and log 3: V = log 4, -log pi = log 4. Q - gamma V' = 2, alpha = 1/2: 4 / 2."""
        taken = torch.tensor([[0.0]])
        others = torch.tensor([[[3.0]]]).log()
        values = soft_values(taken, others, torch.zeros(1, 1))
        assert float(values) == pytest.approx(np.log(4))
        assert float(soft_values(taken, others, torch.full((1, 1), 2.0).log())) == pytest.approx(np.log(7))
        assert float(soft_values(taken, others, torch.full((1, 1), -torch.inf))) == 0.0
        imitation, regulariser = inverse_q_loss(taken, values, torch.tensor([[-2.0]]), 0.5)
        assert float(imitation) == pytest.approx(np.log(4)) and float(regulariser) == 2.0

    def test_is_the_papers(self, recipe):
        """-E[phi(Q - gamma V')] + E[V - gamma V'], phi(r) = r - r^2 / (4 alpha), as its code has it offline."""
        records = [demonstrated((0.0, 0.0), (1.0, 1.0)), demonstrated((0.0, 1.0), (2.0, 0.0))]
        gamma, alpha = 0.9, 0.25  # the sum has the squares of what is learnt of V too
        model = TabularModel(
            records, recipe(objective="inverse_q", backbone="linear", discount=gamma, regulariser=alpha)
        )
        table = torch.randn(model.table.shape, dtype=torch.double, generator=torch.Generator().manual_seed(0))
        q = {key: float(table[1 + place, 0, 0]) for place, key in enumerate(model.keys)}
        after = {key: float(table[1 + place, 0, 1]) for place, key in enumerate(model.keys)}

        def value(state: float) -> float:
            return float(np.logaddexp(*(q[state, action] for action in (0.0, 1.0))))

        wanted = []
        for record in records:
            (first, second) = (tuple(step.features) for step in record.trajectory.steps)
            total = 0.0
            for key, following in ((first, gamma * value(second[0])), (second, 0.0)):
                reward = q[key] - following
                total += -(reward - reward**2 / (4 * alpha)) + value(key[0]) - following
                squares = [
                    (after[key[0], action] - gamma * value(key[0])) ** 2
                    for action in (0.0, 1.0)
                    if (key[0], action) in after
                ]
                total += sum(squares) / 2
            wanted.append(total / 2)
        assert model.losses(table).flatten().tolist() == pytest.approx(wanted)
        assert torch.autograd.gradcheck(model.losses, table.requires_grad_())

    def test_others_only_hold_rewards_near_zero(self, recipe):
        success = OutcomeRecord(trajectory=trajectory((0.0, 1.0)), success=True)
        model = TabularModel([demonstrated((0.0, 0.0)), success], recipe(objective="inverse_q"))
        table = torch.zeros_like(model.table)
        table[1 + model.keys.index((0.0, 1.0)), 0, 0] = 3.0
        table[..., 1] = np.logaddexp(0, 3)
        shown_loss, other_loss = model.losses(table).flatten().tolist()
        assert other_loss == pytest.approx(9 / 2)
        assert shown_loss == pytest.approx(np.logaddexp(0, 3))


class TestRecovery:
    def test_the_soft_optimal_policy_of_a_chain(self, recipe):
        """Demonstrations in the shares that the soft-optimal policy of known rewards takes: Q - V is its log ratio."""
        rewards = {(0, 0): 0.0, (0, 1): 0.4, (1, 0): 0.7, (1, 1): -0.3, (2, 0): 0.2, (2, 1): 0.0}
        following = {(0, 0): 1, (0, 1): 2, (1, 0): None, (1, 1): 2, (2, 0): None, (2, 1): None}
        gamma, q = 0.9, {}
        for state in (2, 1, 0):  # states before others in the chain
            for action in (0, 1):
                after = following[state, action]
                value = 0.0 if after is None else np.logaddexp(q[after, 0], q[after, 1])
                q[state, action] = rewards[state, action] + gamma * value
        policy = {key: np.exp(q[key] - np.logaddexp(q[key[0], 0], q[key[0], 1])) for key in q}
        records = []
        for path, share in _paths(policy, following):
            rows = [(float(state), float(action)) for state, action in path]
            records.append(weighted(demonstrated(*rows), share))
        found = TabularModel(
            records, recipe(objective="inverse_q", backbone="linear", discount=gamma, regulariser=1e6)
        )
        found.weights = torch.tensor([record.weight for record in records])
        plain = found.losses
        found.losses = lambda table: plain(table) * found.weights.unsqueeze(-1)
        learnt = found.fit()
        for state in (0, 1, 2):
            pair = [learnt[float(state), float(action)][0] for action in (0, 1)]
            for action in (0, 1):
                log_ratio = pair[action] - np.logaddexp(*pair)
                assert log_ratio == pytest.approx(np.log(policy[state, action]), abs=2e-3)

    @pytest.mark.parametrize("alpha", [0.5, 2.0])
    def test_the_reward_of_a_single_choice(self, recipe, alpha):
        """One state, two actions, shares p and 1 - p: at the minimum r_a / (2 alpha) p_a = p_a - pi_a, worked out by
        Newton's method here."""
        shares = (0.8, 0.2)
        records = [demonstrated((0.0, 0.0))] * 4 + [demonstrated((0.0, 1.0))]
        found = TabularModel(records, recipe(objective="inverse_q", regulariser=alpha)).fit()
        q = np.zeros(2)
        for _ in range(100):
            pi = np.exp(q) / np.exp(q).sum()
            gradient = pi - shares + np.array(shares) * q / (2 * alpha)
            hessian = np.diag(pi) - np.outer(pi, pi) + np.diag(np.array(shares) / (2 * alpha))
            q = q - np.linalg.solve(hessian, gradient)
        assert [found[0.0, action][0] for action in (0.0, 1.0)] == pytest.approx(q.tolist(), abs=1e-5)


class TestSpeakers:
    def test_each_has_its_own_next_state(self, recipe):
        """Of a, b, a, b the next state after the first step of a is that before its second one."""
        rows = ((0.0, 0.0), (1.0, 0.0), (2.0, 0.0), (3.0, 0.0))
        records = [demonstrated(*rows, speakers="abab"), demonstrated((0.0, 1.0), (1.0, 1.0), speakers="ab")]
        model = TabularModel(
            records, recipe(objective="inverse_q", backbone="linear", discount=1.0, regulariser=0.5)
        )
        base = torch.zeros_like(model.table)
        changed = base.clone()
        changed[1 + model.keys.index((2.0, 0.0)), 0, 0] = 1.0  # of a, after b's step
        losses = [model.losses(table)[0].item() for table in (base, changed)]
        value = np.logaddexp(1.0, 0.0)
        # -log pi of the step; (0 - V)^2 of what it says of its state, and half of it of the reward of the step before
        # it, of a; and 1^2 / 2 of its own reward, after which there is nothing.
        expected = (value - 1.0 - np.log(2)) + 1.5 * (value**2 - np.log(2) ** 2) + 0.5
        assert losses[1] - losses[0] == pytest.approx(expected / model.objective.mean_steps)

    def test_no_speaker_takes_the_step_of_another(self):
        talk = trajectory((0.0, 0.0), (0.0, 5.0), (0.0, 1.0), (0.0, 6.0), speakers="abab")
        found = AlternativeSteps([talk], most=4, action_numbers=1).of(talk)
        assert [[other.steps[-1].features[-1] for other in each.trajectories] for each in found] == [
            [1.0], [6.0], [0.0], [5.0],
        ]  # fmt: skip


class TestAlternatives:
    def step(self, text: str) -> Step:
        return Step(source="agent", message=(Part(text=text),))

    def talk(self, task: str, *texts: str) -> Trajectory:
        asked = Step(source="user", message=(Part(text="Go."),))
        return Trajectory(steps=(asked, *map(self.step, texts)), task=Task(id=task), success=True)

    def test_texts_are_steps_of_the_same_task_after_the_same_beginning(self):
        pool = [self.talk("t", "one", "two"), self.talk("t", "one", "three"), self.talk("u", "four")]
        found = AlternativeSteps(pool, most=4).of(pool[0])
        assert [each.actions for each in found] == [3, 3]
        written = [[[step.text for step in other.steps] for other in each.trajectories] for each in found]
        assert sorted(written[0]) == [["Go.", "three"], ["Go.", "two"]]
        assert sorted(written[1]) == [["Go.", "one", "one"], ["Go.", "one", "three"]]
        assert all(other.success is None for each in found for other in each.trajectories)
        # A task with one step alone takes steps of all others.
        assert {o.steps[-1].text for o in AlternativeSteps(pool, most=9).of(pool[2])[0].trajectories} == {
            "one", "two", "three",
        }  # fmt: skip

    def test_many_are_sampled_the_same_way_each_time(self):
        pool = [self.talk("t", *map(str, range(30)))]
        first, again = (AlternativeSteps(pool, most=5).of(pool[0]) for _ in range(2))
        assert [each.actions for each in first] == [30] * 30 and first == again
        assert all(len({o.content_hash for o in each.trajectories}) == 5 for each in first)


class TestBadInput:
    def test_what_a_dataset_lacks(self):
        alone = Example("inverse_q", demonstrated((0.0, 0.0)), (0,), None, ((1, ()),))
        assert "nothing that an agent could have done otherwise" in OBJECTIVE.validate_dataset(
            [alone], Recipe()
        )
        outcome = OutcomeRecord(trajectory=trajectory((0.0, 0.0)), success=True)
        other = Example("inverse_q", outcome, (0, 1), None, ((2, (1,)),))
        assert "no trajectory is marked as a demonstration" in OBJECTIVE.validate_dataset([other], Recipe())

    @pytest.mark.parametrize(
        ("values", "pointer", "words"),
        [
            ({"objective": "inverse_q", "backbone": "features"}, "/action_numbers", "set action_numbers"),
            ({"objective": "inverse_q", "aggregation": "value"}, "/aggregation", "use 'sum'"),
            ({"objective": "inverse_q", "backbone": "linear", "ensemble": 8}, "/ensemble", "not convex"),
            ({"objective": "outcome", "alternatives": 8}, "/alternatives", "objective = 'inverse_q'"),
            ({"objective": "inverse_q", "action_numbers": 2}, "/action_numbers", "backbone = 'features'"),
            ({"objective": "inverse_q", "expectile": 0.7}, "/expectile", "objective = 'td'"),
            ({"objective": "joint", "joint_weights": {"inverse_q": 1.0}}, "/joint_weights", "inverse_q"),
        ],
    )
    def test_keys(self, values, pointer, words):
        with pytest.raises(RewardError, match=words) as caught:
            parse_new_recipe(values)
        assert caught.value.pointer == pointer

    def test_defaults(self):
        found = parse_recipe(FEATURES)
        assert (found.aggregation, found.ensemble, found.regulariser, found.alternatives) == (
            "sum",
            1,
            0.5,
            4,
        )
        assert parse_recipe({"objective": "inverse_q", "backbone": "linear"}).ensemble == 1


def _paths(policy, following, state=0, path=(), share=1.0):
    for action in (0, 1):
        key, after = (state, action), following[state, action]
        taken = (*path, key), share * policy[key]
        if after is None:
            yield taken
        else:
            yield from _paths(policy, following, after, *taken)


def weighted(record: DemonstrationRecord, weight: float) -> DemonstrationRecord:
    return replace(record, weight=weight)
