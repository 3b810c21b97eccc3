"""Rewards of a served endpoint go back with the feedback, once for each version."""

from typing import Any

import pytest

from apps.accounts.models import Project
from apps.connectors.models import Connector
from apps.rewards.services import deploy
from tests.connectors.conftest import make_connector, pull
from tests.connectors.contract_server import serve
from tests.connectors.langfuse_server import LangfuseServer
from tests.connectors.test_pulling import at
from tests.rewards.conftest import endpoint, fake, key, make_model, project, serves, service, wait_until
from tests.workers.engine.fakes import FakeModel

__all__ = ["endpoint", "fake", "key", "project", "service"]
pytestmark = pytest.mark.ml


def test_rewards_of_an_endpoint(
    project: Project, endpoint: str, service: Any, outgoing_here: None, settings: Any
) -> None:
    settings.REWARDS_ADDRESS = service.url
    server = LangfuseServer()
    server.add("t1", at(0))
    server.add("t2", at(1))
    with serve(server) as url:
        connector = make_connector(project, url, push_endpoint=endpoint)
        pull(connector)
        run = pull(connector, "push")
        assert (run.state, run.pushed, run.unchanged) == ("succeeded", 2, 0), run.error
        rewards = {score["traceId"]: score for score in server.scores.values()}
        assert set(rewards) == {"t1", "t2"}
        assert rewards["t1"]["name"] == "reward desk-reward"
        assert rewards["t1"]["dataType"] == "NUMERIC" and isinstance(rewards["t1"]["value"], float)
        assert rewards["t1"]["metadata"]["version"] == 1
        assert pull(connector, "push").pushed == 0
        deploy(
            model=make_model(project, service, FakeModel()), endpoint_name=endpoint, project=project, by=None
        )
        wait_until(lambda: serves(service, endpoint, 2))
        assert pull(connector, "push").pushed == 2
        assert len(server.scores) == 2
        assert {score["metadata"]["version"] for score in server.scores.values()} == {2}
        Connector.objects.update(push_endpoint="none-such")
        assert "The endpoint none-such serves nothing." in pull(connector, "push").error
