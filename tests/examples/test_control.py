"""A reward learnt from comparisons of clips, and a stock agent that trains on it over HTTP."""

from itertools import islice

import pytest
import torch
from touchstone_client import RewardClient

from apps.accounts.models import Scope
from apps.accounts.services import create_api_key, create_project
from apps.rewards.services import deploy
from docs.examples import control
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
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    project = create_project(slug="desk")
    key = create_api_key(project=project, scopes=[Scope.REWARD])[1]
    with running_service() as service:
        model = make_model(project, service, curve)
        deploy(model=model, endpoint_name="pendulum", project=project, by=None)
        wait_until(lambda: serves(service, "pendulum", 1))
        with RewardClient(service.url, "pendulum", key) as client:
            solved = control.solve(client, seed=0, steps=120)
    torch.set_num_threads(before)
    assert list(solved.returns) == [0, 60, 120]
    assert all(-2000 < value < 0 for value in solved.returns.values())
    assert solved.returns[120] != solved.returns[0]  # it has learnt something, if not yet what is good
