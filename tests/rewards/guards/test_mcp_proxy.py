"""The proxy in front of an MCP server, with the SDK's client: in process, and as a command."""

import os
import sys
from pathlib import Path
from typing import Any

import pytest

from apps.rewards.models import GuardDecision
from tests.peer_modules import PEERS
from tests.rewards.conftest import wait_until
from tests.rewards.guards.conftest import Guarded

LEGACY, MODERN = "legacy", "auto"


async def answers(
    guarded: Guarded,
    *calls: tuple[str, dict[str, Any]],
    approve: bool | None = None,
    mode: str = MODERN,
    on_failure: str | None = None,
) -> list[tuple[bool, str]]:
    """Whether each call failed, and its text. approve: what the user answers; None where the client cannot ask."""
    pytest.importorskip("mcp")
    from mcp import Client
    from mcp_types import ElicitResult
    from touchstone_client.guards.mcp_proxy import guarded_server

    from tests.rewards.guards.mcp_desk import server

    asked: list[str] = []

    async def elicit(context: Any, params: Any) -> Any:
        asked.append(params.message)
        return ElicitResult(action="accept" if approve else "decline", content={"approve": bool(approve)})

    callback = None if approve is None else elicit
    async with guarded.async_client() as rewards, Client(server) as upstream:
        proxy = guarded_server(upstream, rewards, on_failure=on_failure)
        async with Client(proxy, elicitation_callback=callback, mode=mode) as client:
            tools = await client.list_tools()
            assert [tool.name for tool in tools.tools] == ["refund", "delete_user"]
            results = [await client.call_tool(name, arguments) for name, arguments in calls]
            resource = await client.read_resource("desk://rules")
            assert resource.contents[0].text == "Be kind."
    assert len(asked) == (0 if approve is None else 1)
    return [(bool(result.is_error), result.content[0].text) for result in results]


def test_allow_and_deny(guarded: Guarded) -> None:
    found = guarded.play(answers(guarded, ("refund", {"amount": 20}), ("delete_user", {"user": 3})))
    assert found == [
        (False, "refunded 20"),
        (True, "This was not done: it was denied by the rule 'no admins'. Administrators delete."),
    ]
    wait_until(lambda: GuardDecision.objects.count() == 2)
    denied = GuardDecision.objects.get(decision="deny")
    assert "refunded 20" in denied.prefix, "earlier calls of the connection are seen"


@pytest.mark.parametrize("mode", [MODERN, LEGACY])
def test_a_person_is_asked(guarded: Guarded, mode: str) -> None:
    refund = ("refund", {"amount": 80})
    assert guarded.play(answers(guarded, refund, approve=True, mode=mode)) == [(False, "refunded 80")]
    (refused,) = guarded.play(answers(guarded, refund, approve=False, mode=mode))
    assert refused[0] and "a person has to approve it" in refused[1]
    (cannot,) = guarded.play(answers(guarded, refund, mode=mode))
    assert cannot == refused


@pytest.mark.parametrize(("on_failure", "failed"), [("allow", False), ("deny", True), (None, True)])
def test_with_the_service_killed(guarded: Guarded, on_failure: str | None, failed: bool) -> None:
    guarded.kill()
    found = guarded.play(answers(guarded, ("refund", {"amount": 80}), on_failure=on_failure))
    assert found[0][0] == failed


def test_as_a_command(guarded: Guarded) -> None:
    pytest.importorskip("mcp")
    from mcp import Client, StdioServerParameters

    desk = str(Path(__file__).with_name("mcp_desk.py"))
    command = ["-m", "touchstone_client.guards.mcp_proxy", "--url", guarded.service.url, "--endpoint"]
    paths = os.pathsep.join(path for path in sys.path if path)
    parameters = StdioServerParameters(
        command=sys.executable,
        args=[*command, guarded.endpoint, "--run", "desk-1", "--", sys.executable, desk],
        env={"TOUCHSTONE_KEY": guarded.key, "PYTHONPATH": f"{paths}{os.pathsep}{PEERS}"},
    )

    async def run() -> list[tuple[bool, str]]:
        async with Client(parameters) as client:
            calls = (("refund", {"amount": 20}), ("delete_user", {"user": 3}))
            results = [await client.call_tool(name, arguments) for name, arguments in calls]
            return [(bool(result.is_error), result.content[0].text) for result in results]

    allowed, denied = guarded.play(run())
    assert allowed == (False, "refunded 20") and denied[0]
    wait_until(lambda: GuardDecision.objects.filter(run="desk-1").count() == 2)
