"""The guard for tools of a LangGraph graph: wrappers of the tool calls of its `ToolNode`.

    node = ToolNode(tools, wrap_tool_call=guarded_tool_calls(client))  # a RewardClient
    node = ToolNode(tools, awrap_tool_call=guarded_tool_calls_async(client))  # an AsyncRewardClient

A denied call is not made: the model reads the reason in a ToolMessage with status "error". Where the guard asks a
person, the graph is interrupted (it needs a checkpointer) with {"tool", "arguments", "rule", "reason", "tool_call_id"}:
`Command(resume=True)` approves the call, anything else refuses it. A message with several calls is decided as a whole.
"""

from collections.abc import Awaitable, Callable
from typing import Any, Literal

from touchstone_client.errors import MissingExtra
from touchstone_client.guards.recent_decisions import RecentDecisions, message_key, refusal
from touchstone_client.rewards import AsyncRewardClient, RewardClient
from touchstone_client.values import GuardDecision, Item

try:
    from langchain_core.messages import AIMessage, ToolMessage, convert_to_openai_messages
    from langgraph.types import interrupt
except ImportError:
    raise MissingExtra("touchstone_client.guards.langgraph", "langgraph", "langgraph") from None

OnAsk = Literal["interrupt", "deny"]


def guarded_tool_calls(
    client: RewardClient,
    *,
    on_failure: str | None = None,
    on_ask: OnAsk = "interrupt",
    messages_key: str = "messages",
) -> Callable[[Any, Callable[[Any], Any]], Any]:
    """on_failure: allow or deny while the service cannot decide; the endpoint's by default. messages_key: of the state
    of the graph."""
    recent = RecentDecisions()

    def wrap(request: Any, execute: Callable[[Any], Any]) -> Any:
        messages, action = _proposal(request, messages_key)
        decision = recent.decide(
            message_key(messages, action), lambda: client.guard(messages, action, on_failure=on_failure)
        )
        refused = _refused(request.tool_call, decision, on_ask)
        return execute(request) if refused is None else refused

    return wrap


def guarded_tool_calls_async(
    client: AsyncRewardClient,
    *,
    on_failure: str | None = None,
    on_ask: OnAsk = "interrupt",
    messages_key: str = "messages",
) -> Callable[[Any, Callable[[Any], Awaitable[Any]]], Awaitable[Any]]:
    """As `guarded_tool_calls`, for graphs that run by `ainvoke` and `astream`."""
    recent = RecentDecisions()

    async def wrap(request: Any, execute: Callable[[Any], Awaitable[Any]]) -> Any:
        messages, action = _proposal(request, messages_key)

        async def ask() -> GuardDecision:
            return await client.guard(messages, action, on_failure=on_failure)

        decision = await recent.decide_async(message_key(messages, action), ask)
        refused = _refused(request.tool_call, decision, on_ask)
        return await execute(request) if refused is None else refused

    return wrap


def _refused(call: dict[str, Any], decision: GuardDecision, on_ask: OnAsk) -> ToolMessage | None:
    if decision.is_allowed:
        return None
    if decision.decision == "ask" and on_ask == "interrupt":
        question = {"tool": call["name"], "arguments": call["args"], "tool_call_id": call["id"]}
        if interrupt(question | {"rule": decision.rule, "reason": decision.reason}) is True:
            return None
    return ToolMessage(refusal(decision), name=call["name"], tool_call_id=call["id"], status="error")


def _proposal(request: Any, messages_key: str) -> tuple[list[Item], Item]:
    """What was before the message that the call is in, and it. Raises ValueError where no message has the call."""
    state = request.state
    if isinstance(state, dict):
        messages = state[messages_key]
    else:
        messages = state if isinstance(state, list) else getattr(state, messages_key)
    call = request.tool_call["id"]
    for place in range(len(messages) - 1, -1, -1):
        message = messages[place]
        if isinstance(message, AIMessage) and any(each["id"] == call for each in message.tool_calls):
            converted: Any = convert_to_openai_messages(list(messages[: place + 1]))
            return converted[:-1], converted[-1]
    raise ValueError(
        f"no message of the state has the call {call!r}, so that the guard cannot decide about it"
    )
