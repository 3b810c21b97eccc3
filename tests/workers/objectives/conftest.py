"""Batches without a model: the rewards are given."""

from dataclasses import replace

import pytest
import torch

from workers.models.reward_model import Outputs, aggregate
from workers.models.states import States
from workers.objectives import Example, ObjectiveBatch
from workers.schema.recipe import Recipe
from workers.text import Numbers

RECIPE = Recipe(centring=0.0, annotators="equal")


@pytest.fixture
def recipe():
    def make(**fields) -> Recipe:
        return replace(RECIPE, **fields)

    return make


@pytest.fixture
def batch():
    """make(objective, records, values, ...): values: of every trajectory, V_0 and V_t of its steps, for each head."""

    def make(
        objective, records, values, *, labels=None, criteria=None, aggregation="value", heads=1, dropped=0
    ) -> ObjectiveBatch:
        rows, examples = iter(range(len(values))), []
        for record in records:
            sides = len(getattr(record, "trajectories", ())) or (2 if hasattr(record, "choice") else 1)
            examples.append(Example(objective, record, tuple(next(rows) for _ in range(sides))))
        counts = tuple(len(value) - 1 for value in values)
        flat = torch.tensor([number for value in values for number in value], dtype=torch.float64)
        flat = flat.unsqueeze(1).expand(-1, heads).clone().requires_grad_()
        states = States(flat, counts)
        outputs = Outputs(
            values=states,
            labels=None if labels is None else States(torch.tensor(labels, dtype=torch.float64), counts),
            rewards=aggregate(states, aggregation),
            aggregation=aggregation,
            ends=states.flat[states.last],
            criteria={name: torch.tensor(one, dtype=torch.float64) for name, one in (criteria or {}).items()},
        )
        rendered = [Numbers(((0.0,),) * count, count + dropped) for count in counts]
        return ObjectiveBatch(examples, outputs, {place: place for place in range(len(values))}, rendered)

    return make
