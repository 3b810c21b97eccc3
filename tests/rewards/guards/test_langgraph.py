"""The guard in front of a LangGraph ToolNode, in a graph with a scripted chat model."""

from typing import Any

import pytest

from apps.rewards.models import GuardDecision
from tests.rewards.conftest import wait_until
from tests.rewards.guards.conftest import Guarded

CONFIG = {"configurable": {"thread_id": "1"}}


class Graph:
    """A model that makes the calls of a script, and a node of two tools. done: what was called."""

    def __init__(self, *turns: list[dict[str, Any]], **wrappers: Any) -> None:
        pytest.importorskip("langgraph")
        from langchain_core.language_models.fake_chat_models import GenericFakeChatModel
        from langchain_core.messages import AIMessage
        from langchain_core.tools import tool
        from langgraph.checkpoint.memory import InMemorySaver
        from langgraph.graph import START, MessagesState, StateGraph
        from langgraph.prebuilt import ToolNode, tools_condition

        self.done: list[tuple[str, int]] = []

        @tool
        def refund(amount: int) -> str:
            """Refund."""
            self.done.append(("refund", amount))
            return f"refunded {amount}"

        @tool
        def delete_user(user: int) -> str:
            """Delete."""
            self.done.append(("delete_user", user))
            return "deleted"

        script = [AIMessage("", tool_calls=turn) for turn in turns]
        model = GenericFakeChatModel(messages=iter([*script, AIMessage("Done.")]))

        def call_model(state: Any) -> Any:
            return {"messages": [model.invoke(state["messages"])]}

        graph = StateGraph(MessagesState)
        graph.add_node("model", call_model)
        graph.add_node("tools", ToolNode([refund, delete_user], **wrappers))
        graph.add_edge(START, "model")
        graph.add_conditional_edges("model", tools_condition)
        graph.add_edge("tools", "model")
        self.compiled = graph.compile(checkpointer=InMemorySaver())

    def run(self, given: Any = "Hello") -> Any:
        return self.compiled.invoke(_input(given), CONFIG)

    async def run_async(self, given: Any = "Hello") -> Any:
        return await self.compiled.ainvoke(_input(given), CONFIG)


def _input(given: Any) -> Any:
    return {"messages": [("user", given)]} if isinstance(given, str) else given


def call(name: str, number: int = 0, **arguments: Any) -> dict[str, Any]:
    return {"name": name, "args": arguments, "id": f"call-{name}-{number}", "type": "tool_call"}


def results(state: Any) -> list[str]:
    return [message.content for message in state["messages"] if message.type == "tool"]


def graph_of(guarded: Guarded, *turns: list[dict[str, Any]], **options: Any) -> Graph:
    from touchstone_client.guards.langgraph import guarded_tool_calls

    return Graph(*turns, wrap_tool_call=guarded_tool_calls(guarded.client(), **options))


def test_allow_and_deny(guarded: Guarded) -> None:
    graph = graph_of(guarded, [call("refund", amount=20)], [call("delete_user", user=3)])
    state = graph.run("Refund 20, and delete user 3.")
    assert graph.done == [("refund", 20)] and state["messages"][-1].content == "Done."
    first, second = results(state)
    assert first == "refunded 20" and "denied by the rule 'no admins'" in second
    assert [message.status for message in state["messages"] if message.type == "tool"] == ["success", "error"]
    wait_until(lambda: GuardDecision.objects.count() == 2)
    denied = GuardDecision.objects.get(decision="deny")
    assert "Refund 20, and delete user 3." in denied.prefix and "refunded 20" in denied.prefix


def test_a_person_is_asked(guarded: Guarded) -> None:
    from langgraph.types import Command

    for answer, done in ((True, [("refund", 80)]), (False, []), ("yes", [])):
        graph = graph_of(guarded, [call("refund", amount=80)])
        (interrupt,) = graph.run()["__interrupt__"]
        assert graph.done == [] and interrupt.value["tool"] == "refund" and interrupt.value["rule"] == "limit"
        state = graph.run(Command(resume=answer))
        assert graph.done == done and state["messages"][-1].content == "Done."
    denying = graph_of(guarded, [call("refund", amount=80)], on_ask="deny")
    assert "a person has to approve it" in results(denying.run())[0] and denying.done == []


def test_a_message_with_several_calls_is_decided_as_a_whole(guarded: Guarded) -> None:
    graph = graph_of(guarded, [call("refund", amount=20), call("delete_user", user=3)])
    assert len(results(graph.run())) == 2 and graph.done == []
    wait_until(lambda: GuardDecision.objects.count() > 0)
    assert GuardDecision.objects.count() == 1


def test_asynchronously(guarded: Guarded) -> None:
    from langgraph.types import Command
    from touchstone_client.guards.langgraph import guarded_tool_calls_async

    async def run() -> Any:
        async with guarded.async_client() as client:
            turns = [
                [call("refund", amount=20)],
                [call("delete_user", user=3)],
                [call("refund", 1, amount=80)],
            ]
            graph = Graph(*turns, awrap_tool_call=guarded_tool_calls_async(client))
            await graph.run_async()
            assert graph.done == [("refund", 20)]
            await graph.run_async(Command(resume=True))
            return graph.done

    assert guarded.play(run()) == [("refund", 20), ("refund", 80)]


@pytest.mark.parametrize(("on_failure", "done"), [("allow", [("refund", 80)]), ("deny", []), (None, [])])
def test_with_the_service_killed(
    guarded: Guarded, on_failure: str | None, done: list[tuple[str, int]]
) -> None:
    graph = graph_of(guarded, [call("refund", amount=80)], on_failure=on_failure)
    guarded.kill()
    assert graph.run()["messages"][-1].content == "Done." and graph.done == done
