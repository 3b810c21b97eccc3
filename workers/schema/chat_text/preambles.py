"""What chat templates write into a system message themselves: declared tools, dates, default instructions."""

import json
from dataclasses import dataclass, field
from typing import Any

from workers.schema.patterns import TextPattern

_DEFAULTS = (
    TextPattern(r"\AYou are Qwen, created by Alibaba Cloud\. You are a helpful assistant\.(?:\n\n)?"),
    TextPattern(r"\AReasoning effort is set to [^\n]*(?:\n\n|\z)"),
    TextPattern(
        r"\A(?:Environment: ipython\n)?(?:Tools: [^\n]*\n+)?Cutting Knowledge Date: [^\n]*\nToday Date: [^\n]*\n*"
    ),
    TextPattern(r"(?s)\AYou are ChatGPT, a large language model trained by OpenAI\.\n.*\z"),
    TextPattern(r"(?s)\A# System Preamble\n.*?(?:# Developer Preamble\n[^\n]*\n|\z)"),
    TextPattern(
        r"(?s)\AYou are a helpful AI assistant\.\nKnowledge cutoff: [^\n]*\nCurrent date: [^\n]*(?:\n\n|\z)"
    ),
    TextPattern(r"(?s)\n*(?:\A|\n\n)Reasoning strength: [^\n]*\.(?:\n.*)?\z"),
)
_TOOLS = (
    TextPattern(r"(?s)# Tools\n\nYou (?:may call|have access to).*?</IMPORTANT>"),
    TextPattern(
        r"(?s)# Tools\n\nYou (?:may call|have access to).*?(?:<args-json-object>\}|\n\.\.\.)\n</tool_call>"
    ),  # Qwen and GLM
    TextPattern(r"(?s)# Tools\n\nYou (?:may call|have access to).*</tool_call>"),
    TextPattern(r"(?s)# Tools\n+## functions\n.*// namespace functions"),
    TextPattern(r"(?s)List of tools: (?:<\|tool_list_start\|>.*<\|tool_list_end\|>|\[.*\])"),
    TextPattern(r"(?s)(?:<\|tool>.*?<tool\|>)+"),
    TextPattern(r"(?s)In this environment you have access to a set of tools.*\z"),
)  # fmt: skip
_LLAMA_TOOLS = TextPattern(
    r"(?s)\A(?:Given the following functions, please respond with a JSON|You have access to the following functions\.)"
    r".*?\n\n.*?\n\n"
)
_HELPFUL = "You are a helpful assistant."  # of some templates, and of many people


@dataclass(slots=True)
class Preamble:
    """What a template added, as far as later turns need it. types: of tools' parameters."""

    flags: set[str] = field(default_factory=set)
    types: dict[tuple[str, str], str] = field(default_factory=dict)


def strip_preamble(text: str, found: Preamble, *, has_instructions: bool) -> str:
    """A system message as the sender wrote it. has_instructions: the template puts a heading above it."""
    for pattern in _TOOLS:
        if (tools := pattern.search(text)) is not None:
            _declare(tools[0], found)
            before, after = text[: tools.start()].rstrip("\n"), text[tools.end() :].lstrip("\n")
            text = "\n\n".join(part for part in (before, after) if part)
    for default in _DEFAULTS:
        if (written := default.search(text)) is not None and written[0]:
            found.flags.add("unread:default_system")
            text = text[: written.start()] + text[written.end() :]
    instructions = text.removeprefix("# Instructions\n\n")
    if has_instructions and instructions != text:
        text = instructions.strip("\n")
    if text == _HELPFUL:
        found.flags.add("template_lossy")
    return text


def strip_llama_tools(text: str, found: Preamble) -> str:
    """The first message of a user, in which Llama 3 declares tools."""
    head = _LLAMA_TOOLS.match(text)
    if head is None:
        return text
    at, decoder = head.end(), json.JSONDecoder()
    while True:
        try:
            tool, end = decoder.raw_decode(text, at)
        except (ValueError, RecursionError):
            break
        _declare(json.dumps(tool), found)
        at = end + 2 if text[end : end + 2] == "\n\n" else end
    return text[at:] if at > head.end() else text


def declare_tools(text: str, found: Preamble) -> None:
    _declare(text, found)


def _declare(text: str, found: Preamble) -> None:
    found.flags.add("unread:tools")
    decoder = json.JSONDecoder()
    at = min((place for place in (text.find("{"), text.find("[{")) if place >= 0), default=-1)
    while at >= 0:
        try:
            tool, end = decoder.raw_decode(text, at)
        except (ValueError, RecursionError):
            break
        for each in tool if isinstance(tool, list) else [tool]:
            _read_types(each, found)
        at = text.find("{", end)
    for tool in _XML_TOOL.finditer(text):
        for parameter in _XML_PARAMETER.finditer(tool[2]):
            found.types[tool[1], parameter[1]] = parameter[2]


_XML_TOOL = TextPattern(r"(?s)<function>\n<name>([^<]*)</name>(.*?)</function>")
_XML_PARAMETER = TextPattern(r"(?s)<parameter>\n<name>([^<]*)</name>\n<type>([^<]*)</type>")


def _read_types(tool: Any, found: Preamble) -> None:
    function = tool.get("function", tool) if isinstance(tool, dict) else None
    parameters = function.get("parameters") if isinstance(function, dict) else None
    properties = parameters.get("properties") if isinstance(parameters, dict) else None
    if not isinstance(properties, dict) or not isinstance(function, dict):
        return
    for name, schema in properties.items():
        kind = schema.get("type") if isinstance(schema, dict) else None
        if isinstance(kind, str):
            found.types[str(function.get("name")), name] = kind
