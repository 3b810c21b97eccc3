"""The guard in front of tools of the OpenAI Agents SDK, with its runner and its scripted model."""

import json
from typing import Any

import pytest

from apps.rewards.models import GuardDecision
from tests.rewards.conftest import wait_until
from tests.rewards.guards.conftest import Guarded


class Desk:
    """An agent with two tools, whose model makes the calls of a script. done: what was called."""

    def __init__(self, guard: Any, *turns: list[tuple[str, dict[str, Any]]]) -> None:
        agents = pytest.importorskip("agents")
        from agents.testing import ScriptedModel, assistant_message, function_call

        self.done: list[tuple[str, int]] = []

        @agents.function_tool
        def refund(amount: int) -> str:
            self.done.append(("refund", amount))
            return f"refunded {amount}"

        @agents.function_tool
        def delete_user(user: int) -> str:
            self.done.append(("delete_user", user))
            return "deleted"

        self.model = ScriptedModel(
            [
                *(
                    [
                        function_call(name, json.dumps(arguments), call_id=f"call-{place}-{number}")
                        for number, (name, arguments) in enumerate(turn)
                    ]
                    for place, turn in enumerate(turns)
                ),
                [assistant_message("Done.")],
            ]
        )
        self.agent = agents.Agent(
            name="Desk",
            instructions="Help.",
            model=self.model,
            tools=[guard.protect(refund), guard.protect(delete_user)],
        )
        self.guard, self.agents = guard, agents

    async def run(self, given: Any = "Hello", **options: Any) -> Any:
        config = self.agents.RunConfig(tracing_disabled=True)
        hooks = options.pop("hooks", self.guard.hooks)
        return await self.agents.Runner.run(self.agent, given, hooks=hooks, run_config=config, **options)

    @property
    def results(self) -> list[str]:
        """Of the tools, as the model read them last."""
        items = self.model.calls[-1].input
        return [item["output"] for item in items if item.get("type") == "function_call_output"]


def with_desk(guarded: Guarded, *turns: list[tuple[str, dict[str, Any]]], **options: Any) -> Any:
    from touchstone_client.guards.openai_agents import AgentsGuard

    return Desk(AgentsGuard(guarded.async_client(), **options), *turns)


def test_allow_and_deny(guarded: Guarded) -> None:
    desk = with_desk(guarded, [("refund", {"amount": 20})], [("delete_user", {"user": 3})])
    result = guarded.play(desk.run("Refund 20, and delete user 3."))
    assert result.final_output == "Done." and desk.done == [("refund", 20)]
    assert desk.results[0] == "refunded 20"
    assert desk.results[1] == (
        "This was not done: it was denied by the rule 'no admins'. Administrators delete."
    )
    wait_until(lambda: GuardDecision.objects.count() == 2)
    denied = GuardDecision.objects.get(decision="deny")
    assert "Refund 20, and delete user 3." in denied.prefix and "refunded 20" in denied.prefix
    assert "delete_user" in denied.action and "system: Help." in denied.prefix


def test_a_person_is_asked(guarded: Guarded) -> None:
    async def ask(approve: bool) -> Any:
        desk = with_desk(guarded, [("refund", {"amount": 80})])
        result = await desk.run()
        assert desk.done == [] and len(result.interruptions) == 1
        assert result.interruptions[0].name == "refund"
        state = result.to_state()
        (state.approve if approve else state.reject)(result.interruptions[0])
        result = await desk.run(state)
        assert result.final_output == "Done."
        return desk.done

    assert guarded.play(ask(True)) == [("refund", 80)]
    assert guarded.play(ask(False)) == []


def test_a_message_with_several_calls_is_decided_as_a_whole(guarded: Guarded) -> None:
    desk = with_desk(guarded, [("refund", {"amount": 20}), ("delete_user", {"user": 3})])
    guarded.play(desk.run())
    assert desk.done == [] and len(desk.results) == 2
    wait_until(lambda: GuardDecision.objects.count() > 0)
    assert GuardDecision.objects.count() == 1


def test_an_approval_for_good_does_not_open_what_is_denied(guarded: Guarded) -> None:
    async def run() -> Any:
        desk = with_desk(guarded, [("refund", {"amount": 80})], [("delete_user", {"user": 3})])
        state = (result := await desk.run()).to_state()
        state.approve(result.interruptions[0], always_approve=True)
        await desk.run(state)
        return desk.done

    assert guarded.play(run()) == [("refund", 80)]


def test_raising(guarded: Guarded) -> None:
    desk = with_desk(guarded, [("delete_user", {"user": 3})], on_deny="raise")
    with pytest.raises(desk.agents.ToolInputGuardrailTripwireTriggered):
        guarded.play(desk.run())
    assert desk.done == []


def test_without_the_hooks(guarded: Guarded) -> None:
    desk = with_desk(guarded, [("refund", {"amount": 20})])
    with pytest.raises(desk.agents.UserError, match=r"hooks=guard\.hooks"):
        guarded.play(desk.run(hooks=None))
    assert desk.done == []


@pytest.mark.parametrize(("on_failure", "done"), [("allow", [("refund", 80)]), ("deny", []), (None, [])])
def test_with_the_service_killed(
    guarded: Guarded, on_failure: str | None, done: list[tuple[str, int]]
) -> None:
    desk = with_desk(guarded, [("refund", {"amount": 80})], on_failure=on_failure)
    guarded.kill()
    assert guarded.play(desk.run()).final_output == "Done." and desk.done == done
