"""A proxy in front of an MCP server, which asks the guard before each `tools/call`.

    python -m touchstone_client.guards.mcp_proxy --url URL --endpoint NAME -- COMMAND OF THE SERVER
    python -m touchstone_client.guards.mcp_proxy --url URL --endpoint NAME --server http://127.0.0.1:9000/mcp

It is a server on standard input and output; the key is read from TOUCHSTONE_KEY. A denied call is answered with an
error that the model reads. Where the guard asks a person, the client's user is asked (elicitation); a client that
cannot ask gets the denial. MCP has no conversation: the guard sees the calls of this connection and their results, so
that rules about what the user said hold for no call. One proxy serves one conversation.
"""

import argparse
import asyncio
import json
import os
import secrets
from collections.abc import Sequence
from typing import Any

from touchstone_client.errors import MissingExtra
from touchstone_client.guards.recent_decisions import refusal
from touchstone_client.retries import Retries
from touchstone_client.rewards import AsyncRewardClient
from touchstone_client.values import GuardDecision, Item

try:
    from mcp import Client, StdioServerParameters
    from mcp.server.lowlevel import Server
    from mcp.server.stdio import stdio_server
    from mcp_types import (
        CallToolRequestParams,
        CallToolResult,
        ElicitRequest,
        ElicitRequestFormParams,
        ElicitResult,
        InputRequiredResult,
        TextContent,
    )
except ImportError:
    raise MissingExtra("touchstone_client.guards.mcp_proxy", "mcp", "mcp") from None

_INPUT_REQUIRED = "2026-07-28"  # from this version of the protocol, a server asks in its answer
_MOST_ASKED = 1000  # that wait for an answer
_APPROVE = {
    "type": "object",
    "properties": {"approve": {"type": "boolean", "title": "Approve this call"}},
    "required": ["approve"],
}


def guarded_server(
    upstream: Client,
    client: AsyncRewardClient,
    *,
    on_failure: str | None = None,
    name: str = "touchstone-guard",
) -> "Server[Any]":
    """A server with the tools, resources and prompts of `upstream`, which is connected. on_failure: allow or deny while
    the service cannot decide; the endpoint's by default."""
    proxy, has = _Proxy(upstream, client, on_failure), upstream.server_capabilities
    handlers: dict[str, Any] = {}
    if has.resources is not None:
        handlers |= {
            "on_list_resources": lambda _, params: upstream.list_resources(cursor=_cursor(params)),
            "on_list_resource_templates": lambda _, params: upstream.list_resource_templates(
                cursor=_cursor(params)
            ),
            "on_read_resource": lambda _, params: upstream.read_resource(params.uri),
        }
    if has.prompts is not None:
        handlers |= {
            "on_list_prompts": lambda _, params: upstream.list_prompts(cursor=_cursor(params)),
            "on_get_prompt": lambda _, params: upstream.get_prompt(params.name, params.arguments),
        }
    return Server(name, on_list_tools=proxy.list_tools, on_call_tool=proxy.call_tool, **handlers)


class _Proxy:
    def __init__(self, upstream: Client, client: AsyncRewardClient, on_failure: str | None) -> None:
        self._upstream, self._client, self._on_failure = upstream, client, on_failure
        self._messages: list[Item] = []
        self._asked: dict[str, tuple[CallToolRequestParams, GuardDecision]] = {}

    async def list_tools(self, context: Any, params: Any) -> Any:
        return await self._upstream.list_tools(cursor=_cursor(params))

    async def call_tool(
        self, context: Any, params: CallToolRequestParams
    ) -> CallToolResult | InputRequiredResult:
        asked = self._asked.pop(params.request_state or "", None)
        if asked is not None and _is_same_call(asked[0], params):
            answer = (params.input_responses or {}).get("approve")
            return await self._call(params) if _is_approved(answer) else _denied(asked[1])
        action = {"name": params.name, "arguments": params.arguments or {}}
        decision = await self._client.guard(self._messages, action, on_failure=self._on_failure)
        if decision.is_allowed:
            return await self._call(params)
        capabilities = context.session.client_capabilities
        if decision.decision != "ask" or capabilities is None or capabilities.elicitation is None:
            return _denied(decision)
        question = (
            f"{params.name} {json.dumps(params.arguments or {}, ensure_ascii=False)}: {decision.reason}"
        )
        if context.protocol_version >= _INPUT_REQUIRED:
            if len(self._asked) >= _MOST_ASKED:
                self._asked.clear()
            token = secrets.token_urlsafe(16)
            self._asked[token] = (params, decision)
            form = ElicitRequestFormParams(message=question, requested_schema=_APPROVE)
            return InputRequiredResult(
                input_requests={"approve": ElicitRequest(params=form)}, request_state=token
            )
        answer = await context.session.elicit_form(question, _APPROVE, context.request_id)
        return await self._call(params) if _is_approved(answer) else _denied(decision)

    async def _call(self, params: CallToolRequestParams) -> CallToolResult:
        result = await self._upstream.call_tool(params.name, params.arguments)
        texts = [part.text for part in result.content if isinstance(part, TextContent)]
        call = f"call-{len(self._messages)}"
        function = {"name": params.name, "arguments": json.dumps(params.arguments or {})}
        self._messages += [
            {
                "role": "assistant",
                "content": None,
                "tool_calls": [{"id": call, "type": "function", "function": function}],
            },
            {"role": "tool", "tool_call_id": call, "content": "\n".join(texts)},
        ]
        return result


def _is_same_call(asked: CallToolRequestParams, params: CallToolRequestParams) -> bool:
    return (asked.name, asked.arguments or {}) == (params.name, params.arguments or {})


def _is_approved(answer: Any) -> bool:
    return (
        isinstance(answer, ElicitResult)
        and answer.action == "accept"
        and (answer.content or {}).get("approve") is True
    )


def _denied(decision: GuardDecision) -> CallToolResult:
    return CallToolResult(content=[TextContent(type="text", text=refusal(decision))], is_error=True)


def _cursor(params: Any) -> str | None:
    return None if params is None else params.cursor


async def serve(
    upstream: str | StdioServerParameters, client: AsyncRewardClient, *, on_failure: str | None = None
) -> None:
    """On standard input and output, until they are closed."""
    async with client, Client(upstream) as connected, stdio_server() as (read, write):
        server = guarded_server(connected, client, on_failure=on_failure)
        await server.run(read, write, server.create_initialization_options())


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument("--url", required=True, help="of Touchstone")
    parser.add_argument("--endpoint", required=True)
    parser.add_argument("--run", help="the policy run that decisions are logged under")
    parser.add_argument("--on-failure", choices=["allow", "deny"], help="while the guard cannot decide")
    parser.add_argument("--timeout", type=float, default=5.0, help="seconds for a decision")
    parser.add_argument("--server", help="the address of a server that speaks Streamable HTTP")
    parser.add_argument("command", nargs="*", help="that starts a server on standard input and output")
    options = parser.parse_args(arguments)
    if bool(options.server) == bool(options.command):
        parser.error("give --server or the command of a server")
    key = os.environ.get("TOUCHSTONE_KEY")
    if not key:
        parser.error("set TOUCHSTONE_KEY to a key with the scope reward")
    own = {name: value for name, value in os.environ.items() if name != "TOUCHSTONE_KEY"}
    upstream = options.server or StdioServerParameters(
        command=options.command[0], args=options.command[1:], env=own
    )
    client = AsyncRewardClient(
        options.url,
        options.endpoint,
        key,
        run=options.run,
        retries=Retries(attempts=1),
        timeout=options.timeout,
    )
    asyncio.run(serve(upstream, client, on_failure=options.on_failure))


if __name__ == "__main__":
    main()
