"""Short versions of the policies of docs/examples, on a real reward service: it pays for letters."""

import statistics
from collections.abc import Iterator

import pytest
import torch
from touchstone_client import RewardClient

from apps.accounts.models import Project, Scope
from apps.accounts.services import create_api_key, create_project
from apps.rewards.models import ScoreRollup
from apps.rewards.services import deploy
from docs.examples import best_of_n, gigpo
from tests.rewards.conftest import make_model, running_service, serves, wait_until
from tests.workers.engine.fakes import FakeModel

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.slow]


@pytest.fixture(autouse=True)
def one_thread() -> Iterator[None]:
    """The policies are too small for more."""
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)


@pytest.fixture
def client() -> Iterator[RewardClient]:
    project: Project = create_project(slug="desk")
    key = create_api_key(project=project, scopes=[Scope.REWARD])[1]
    with running_service() as service:
        deploy(
            model=make_model(project, service, FakeModel(factor=0.1)),
            endpoint_name="desk",
            project=project,
            by=None,
        )
        wait_until(lambda: serves(service, "desk", 1))
        with RewardClient(service.url, "desk", key, run="example") as client:
            yield client


@pytest.mark.long
@pytest.mark.parametrize("by", ["steps", "trajectories"])
def test_a_loop_learns_what_is_paid(client: RewardClient, by: gigpo.By) -> None:
    curve = gigpo.train(client, seed=0, by=by, steps=20)
    assert len(curve.given) == len(curve.true) == 20
    first, last = statistics.mean(curve.given[:5]), statistics.mean(curve.given[-5:])
    assert last > first + 0.1, (first, last)


@pytest.mark.long
@pytest.mark.filterwarnings("ignore")  # TRL and transformers, about each other
def test_trl_learns_what_is_paid(client: RewardClient) -> None:
    from docs.examples import grpo  # and with it TRL's trainers

    curve = grpo.train(client, seed=0, rounds=2, steps=12)
    assert len(curve.given) == 24
    first, last = statistics.mean(curve.given[:4]), statistics.mean(curve.given[-4:])
    assert last > first + 0.05, (first, last)

    def counted() -> bool:
        """Replicas write down what was asked of them now and then."""
        rows = ScoreRollup.objects.filter(
            run="example", policy_version__in=["step-3 of 0", "step-11 of 1000"]
        )
        return rows.count() == 2

    wait_until(counted, 30)


def test_the_best_of_more_is_paid_better(client: RewardClient) -> None:
    tries = (1, 4, 8)
    plain = best_of_n.best_of_n(client, seed=0, tries=tries)
    mended = best_of_n.refine(client, seed=0, tries=tries)
    assert len(plain) == len(mended) == 3
    # What is paid is letters: long replies, which are no ruder than short ones, and better than none.
    assert plain[-1] > plain[0] and mended[-1] > mended[0]
