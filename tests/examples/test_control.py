"""A reward learnt from comparisons of clips, and a stock agent that trains on it over HTTP."""

from collections.abc import Iterator
from contextlib import contextmanager
from itertools import islice

import numpy as np
import pytest
import torch
from stable_baselines3.common.env_util import make_vec_env
from touchstone_client import RewardClient

from apps.accounts.models import Scope
from apps.accounts.services import create_api_key, create_project
from apps.rewards.services import deploy
from docs.examples import control, ppo_control
from tests.rewards.conftest import make_model, running_service, serves, wait_until
from workers.device import choose_device
from workers.models import LoadedModel
from workers.schema import Features, PreferenceRecord, Task
from workers.schema.atif import from_atif
from workers.schema.recipe import parse_recipe
from workers.train.cross_validation import CrossValidation


@pytest.fixture(scope="module")
def curve() -> LoadedModel:
    """From half of what the example asks."""
    said = []
    for comparison in control.comparisons(0, 300):
        task = Task(id=comparison["task"]["id"])
        a, b = (from_atif(comparison[side]["trajectory"], task=task) for side in ("a", "b"))
        said.append(
            PreferenceRecord(a=a, b=b, choice=comparison["choice"], annotator=comparison["annotator"])
        )
    recipe = parse_recipe(control.RECIPE)
    _, model = CrossValidation(recipe, 0, choose_device("cpu"), lambda **event: None).train(said)
    model.manifest |= {"aggregation": recipe.aggregation}  # which an artifact says
    return model


def test_the_reward_tells_better_clips(curve: LoadedModel) -> None:
    """Of clips no one compared, more than nine of ten pairs, where the annotator himself errs now and then."""
    clips = list(islice(control.clips(77), 200))
    scores = curve.score([curve.render(Features(tuple(map(tuple, clip.rows)))) for clip in clips])
    pairs = [(place, place + 1) for place in range(0, len(clips), 2)]
    right = [(scores[a].raw > scores[b].raw) == (clips[a].reward > clips[b].reward) for a, b in pairs]
    assert sum(right) / len(right) > 0.9
    assert len(clips[0].rows) == control.CLIP and len({clip.reward for clip in clips}) == 200


def test_the_annotator_errs_where_clips_are_close() -> None:
    said, found = list(control.comparisons(3, 200)), control.clips(3)
    right = {True: [0, 0], False: [0, 0]}
    for line in said:
        a, b = next(found), next(found)
        counts = right[abs(a.reward - b.reward) > 15]
        counts[(line["choice"] == "a") == (a.reward > b.reward)] += 1
    assert right[True][1] > 0.9 * sum(right[True])
    assert 0.5 < right[False][1] / sum(right[False]) < 0.95
    assert len({entry["task"]["id"] for entry in said}) == 30


@pytest.mark.slow
@pytest.mark.django_db(transaction=True)
@pytest.mark.filterwarnings("ignore")  # stable-baselines3, about others
def test_a_stock_agent_asks_for_each_step(curve: LoadedModel, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(control, "EVERY", 60)
    monkeypatch.setattr(control, "EPISODES", 1)
    with pendulum_client(curve) as client:
        solved = control.solve(client, seed=0, steps=120)
    assert list(solved.returns) == [0, 60, 120]
    assert all(-2000 < value < 0 for value in solved.returns.values())
    assert solved.returns[120] != solved.returns[0]  # it has learnt something, if not yet what is good


@pytest.mark.slow
@pytest.mark.django_db(transaction=True)
@pytest.mark.filterwarnings("ignore")  # stable-baselines3, about others
def test_a_stock_ppo_asks_for_the_steps_of_all_environments(
    curve: LoadedModel, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(ppo_control, "EVERY", 512)
    monkeypatch.setattr(ppo_control, "_LONG", 32)
    monkeypatch.setattr(control, "EPISODES", 1)
    with pendulum_client(curve) as client:
        env = ppo_control.EndpointRewards(make_vec_env(control.ENVIRONMENT, 3, seed=0), client)
        seen = env.reset()
        actions = np.array([[-2.0], [0.5], [2.0]], dtype=np.float32)
        rewards = env.step(actions)[1]
        clips = [
            {"features": [[*map(float, row), float(push[0])]]}
            for row, push in zip(seen, actions, strict=True)
        ]
        steps = [result.steps[-1] for result in client.score(clips).results if result.steps]
        assert rewards == pytest.approx([control.CLIP * step for step in steps], abs=1e-4)
        assert len(set(rewards.tolist())) == 3
        solved = ppo_control.solve(client, seed=0, steps=1024)
    assert list(solved.returns) == [0, 512, 1024]
    assert all(-2000 < value < 0 for value in solved.returns.values())
    assert solved.returns[1024] != solved.returns[0]


@contextmanager
def pendulum_client(model: LoadedModel) -> Iterator[RewardClient]:
    """Of an endpoint that serves the model, for policies that are too small for more than one thread."""
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    project = create_project(slug="desk")
    key = create_api_key(project=project, scopes=[Scope.REWARD])[1]
    with running_service() as service:
        made = make_model(project, service, model)
        deploy(model=made, endpoint_name="pendulum", project=project, by=None)
        wait_until(lambda: serves(service, "pendulum", 1))
        with RewardClient(service.url, "pendulum", key) as client:
            yield client
    torch.set_num_threads(before)
