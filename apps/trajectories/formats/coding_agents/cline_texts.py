"""What Cline and Roo Code write as text: calls as XML, and what they showed on the screen."""

import json
from typing import Any

from apps.trajectories.formats.coding_agents.text_calls import tagged
from workers.schema import ToolCall

Message = dict[str, Any]
_TOOLS = (
    *("execute_command", "read_file", "write_to_file", "replace_in_file", "apply_diff", "insert_content"),
    *(
        "search_files",
        "list_files",
        "list_code_definition_names",
        "browser_action",
        "use_mcp_tool",
        "web_fetch",
    ),
    *("access_mcp_resource", "ask_followup_question", "attempt_completion", "plan_mode_respond", "new_task"),
    *(
        "switch_mode",
        "fetch_instructions",
        "search_and_replace",
        "update_todo_list",
        "codebase_search",
        "edit_file",
    ),
)
_SAYS = ("say", "ask")
_CALLS = ("tool", "command", "browser_action", "use_mcp_server", "browser_action_launch")
_RESULTS = ("command_output", "browser_action_result", "mcp_server_response", "error")


def text_call(text: str) -> tuple[str, ToolCall | None]:
    """The text around the last call of a message, and the call; the full text where there is none."""
    found = tagged(text, _TOOLS)
    if not found:
        return text, None
    block = found[-1]
    arguments: dict[str, Any] = {each.name: each.inner for each in tagged(block.inner)}
    around = (text[: block.start].strip(), text[block.end :].strip())
    return "\n\n".join(part for part in around if part), ToolCall(
        name=block.name, arguments=arguments or block.inner
    )


def is_screen_message(value: Any) -> bool:
    """Whether it is one of ui_messages.json."""
    return isinstance(value, dict) and "ts" in value and value.get("type") in _SAYS and value["type"] in value


def screen_messages(shown: list[Any]) -> tuple[list[Message], list[Any]]:
    """Chat messages of what was shown, and what is none."""
    found: list[Message] = []
    others: list[Any] = []
    for item in shown:
        kind, text = item.get(item["type"]), item.get("text")
        text = text if isinstance(text, str) else ""
        about = {
            key: value for key, value in item.items() if key not in ("type", "say", "ask", "text", "images")
        }
        message = _message(str(kind), text, asked=item["type"] == "ask", is_first=not found)
        if message is None or item.get("partial"):
            others.append(item)
        else:
            urls = item.get("images")
            pictures = [
                {"type": "image_url", "image_url": {"url": url}}
                for url in (urls if isinstance(urls, list) else ())
            ]
            if pictures and isinstance(message.get("content"), str):
                message["content"] = [{"type": "text", "text": message["content"]}, *pictures]
            found.append(message | {"shown": about})
    return found, others


def _message(kind: str, text: str, *, asked: bool, is_first: bool) -> Message | None:
    if kind in _CALLS:
        return _call(kind, text)
    if kind in _RESULTS:
        return {"role": "tool", "content": text} if text and not asked else None
    if kind in ("task", "user_feedback", "user_feedback_diff") or (kind == "text" and is_first):
        return {"role": "user", "content": text}
    if kind == "reasoning":
        return {"role": "assistant", "content": None, "reasoning_content": text} if text else None
    is_said = kind in ("text", "completion_result", "followup", "plan_mode_respond")
    return {"role": "assistant", "content": text} if is_said and text else None


def _call(kind: str, text: str) -> Message:
    try:
        body = json.loads(text)
    except ValueError:
        body = None
    if not isinstance(body, dict):
        body = {"command": text}
    name = body.get("tool") or body.get("toolName") or ("execute_command" if kind == "command" else kind)
    arguments = {key: value for key, value in body.items() if key != "tool"}
    return {"role": "assistant", "content": None, "tool_calls": [{"name": str(name), "arguments": arguments}]}
