"""The guard for tools of the OpenAI Agents SDK (`openai-agents`).

    guard = AgentsGuard(client)  # an AsyncRewardClient
    agent = Agent(name="Support", tools=[guard.protect(cancel_order)])
    result = await Runner.run(agent, "Cancel order 7.", hooks=guard.hooks)

A denied call is not made: its reason is what the model reads as the result. Where the guard asks a person, the run is
interrupted as by `needs_approval`: approve or reject `result.interruptions`, and run the state. What the guard sees is
what the model read, and the message it wrote with all of its calls, which is decided as a whole.
"""

import copy
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from touchstone_client.errors import MissingExtra
from touchstone_client.guards.recent_decisions import RecentDecisions, message_key, refusal
from touchstone_client.rewards import AsyncRewardClient
from touchstone_client.values import GuardDecision, Item

try:
    from agents import FunctionTool, RunHooks, ToolGuardrailFunctionOutput, ToolInputGuardrail
    from agents.exceptions import UserError
except ImportError:
    raise MissingExtra("touchstone_client.guards.openai_agents", "openai-agents", "openai-agents") from None

_MOST_CALLS = 10_000


@dataclass(frozen=True, slots=True)
class _Proposal:
    messages: list[Item]
    action: Item


class AgentsGuard:
    """on_failure: allow or deny while the service cannot decide; the endpoint's by default. on_deny: `reject` has the
    model read the reason, `raise` ends the run with ToolInputGuardrailTripwireTriggered."""

    def __init__(
        self,
        client: AsyncRewardClient,
        *,
        on_failure: str | None = None,
        on_deny: Literal["reject", "raise"] = "reject",
    ) -> None:
        self.hooks = GuardHooks()
        self._client, self._on_failure, self._on_deny = client, on_failure, on_deny
        self._recent = RecentDecisions()

    def protect(self, tool: FunctionTool) -> FunctionTool:
        """A copy of the tool that asks before it runs. Its own guardrails and approvals stay."""
        guarded, own = copy.copy(tool), tool.needs_approval

        async def needs_approval(context: Any, arguments: dict[str, Any], call: str) -> bool:
            decision = await self._decide(tool.name, call)
            if decision.decision == "ask":
                return True
            return await own(context, arguments, call) if callable(own) else own

        guarded.needs_approval = needs_approval
        guardrail: ToolInputGuardrail[Any] = ToolInputGuardrail(self._check, name="touchstone_guard")
        guarded.tool_input_guardrails = [*(tool.tool_input_guardrails or ()), guardrail]
        return guarded

    async def _check(self, data: Any) -> ToolGuardrailFunctionOutput:
        context = data.context
        decision = await self._decide(context.tool_name, context.tool_call_id)
        info = {"decision": decision.decision, "rule": decision.rule, "has_failed": decision.has_failed}
        is_approved = decision.decision == "ask" and context.is_tool_approved(
            context.tool_name, context.tool_call_id
        )
        if decision.is_allowed or is_approved:
            return ToolGuardrailFunctionOutput.allow(info)
        if self._on_deny == "raise":
            return ToolGuardrailFunctionOutput.raise_exception(info)
        return ToolGuardrailFunctionOutput.reject_content(refusal(decision), info)

    async def _decide(self, tool: str, call: str) -> GuardDecision:
        proposal = self.hooks.proposals.get(call)
        if proposal is None:
            raise UserError(
                f"The guard has not seen the model write the call {call} of {tool}: pass hooks=guard.hooks to "
                "Runner.run, and go on with an interrupted run in the process that started it."
            )

        async def ask() -> GuardDecision:
            return await self._client.guard(proposal.messages, proposal.action, on_failure=self._on_failure)

        return await self._recent.decide_async(message_key(proposal.messages, proposal.action), ask)


class GuardHooks(RunHooks[Any]):
    """Keeps what the model read and wrote, by the calls in it."""

    def __init__(self) -> None:
        self.proposals: dict[str, _Proposal] = {}
        self._read: dict[tuple[int, str], list[Item]] = {}

    async def on_llm_start(
        self, context: Any, agent: Any, system_prompt: str | None, input_items: Sequence[Any]
    ) -> None:
        system: list[Item] = [{"role": "system", "content": system_prompt}] if system_prompt else []
        self._read[id(context), agent.name] = [*system, *map(_plain, input_items)]

    async def on_llm_end(self, context: Any, agent: Any, response: Any) -> None:
        messages = self._read.pop((id(context), agent.name), [])
        items = [_plain(item) for item in response.output]
        calls = [item for item in items if item.get("type") == "function_call"]
        if not calls:
            return
        if len(self.proposals) + len(calls) > _MOST_CALLS:
            self.proposals.clear()
        proposal = _Proposal(messages, _action(items, calls))
        self.proposals.update({call["call_id"]: proposal for call in calls})


def _action(items: Sequence[Mapping[str, Any]], calls: Sequence[Mapping[str, Any]]) -> Item:
    parts = [part for item in items if item.get("type") == "message" for part in item.get("content") or ()]
    text = "\n".join(part["text"] for part in parts if part.get("text"))
    return {
        "role": "assistant",
        "content": text or None,
        "tool_calls": [
            {
                "id": call["call_id"],
                "type": "function",
                "function": {"name": call["name"], "arguments": call["arguments"]},
            }
            for call in calls
        ],
    }


def _plain(item: Any) -> dict[str, Any]:
    found: dict[str, Any] = (
        item.model_dump(mode="json", exclude_none=True, exclude_unset=True)
        if hasattr(item, "model_dump")
        else json.loads(json.dumps(item, default=str))
    )
    return found
