"""Tool calls as models write them into their text, by the marks of their chat templates.

What is no well-formed call stays text. Arguments that a template writes without their types are read by the types that
the declared tools give them.
"""

import ast
import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from workers.schema.chat_text.gemma_values import read_gemma_object
from workers.schema.patterns import TextPattern

Json = dict[str, Any]
Types = Mapping[tuple[str, str], str]  # JSON types by (tool, parameter)


@dataclass(slots=True)
class WrittenCalls:
    """text: what stands around the calls. is_lossy: the text does not say everything that an argument was."""

    text: str
    calls: list[Json] = field(default_factory=list)
    is_lossy: bool = False

    def add(self, name: str, arguments: Any, call_id: str | None = None) -> None:
        named = {} if call_id is None else {"id": call_id}
        function = {"name": name, "arguments": arguments}
        self.calls.append(named | {"type": "function", "function": function})


def read_calls(text: str, types: Types, *, bare_json: bool = False) -> WrittenCalls:
    """bare_json: the whole text may be a call, as Llama 3 writes it."""
    for reader in (_tagged, _python, _gemma, _deepseek, _mistral, _invoked):
        if (found := reader(text, types)) is not None:
            return found
    if bare_json and (found := _bare(text)) is not None:
        return found
    return WrittenCalls(text)


def _between(text: str, opening: str, closing: str) -> list[tuple[int, int, str]] | None:
    """Start, end and content of each marked stretch; None where there is none, or one that is not closed."""
    found, at = [], text.find(opening)
    while at >= 0:
        end = text.find(closing, at + len(opening))
        if end < 0:
            return None
        found.append((at, end + len(closing), text[at + len(opening) : end]))
        at = text.find(opening, end + len(closing))
    return found or None


def _around(text: str, stretches: list[tuple[int, int, str]]) -> str:
    before = text[: stretches[0][0]].rstrip("\n")
    after = "".join(
        text[end:start]
        for (_, end, _), (start, _, _) in zip(stretches, [*stretches[1:], (len(text), 0, "")], strict=True)
    ).strip()
    return "\n".join(part for part in (before, after) if part)


def _tagged(text: str, types: Types) -> WrittenCalls | None:
    """`<tool_call>` with JSON (Hermes, Qwen), functions and parameters (Qwen Coder, Nemotron), or keys (GLM)."""
    stretches = _between(text, "<tool_call>", "</tool_call>")
    if stretches is None:
        return None
    found = WrittenCalls(_around(text, stretches))
    for _, _, inner in stretches:
        body = inner.strip()
        if body.startswith("{"):
            call = _json(body)
            if not isinstance(call, dict) or not isinstance(call.get("name"), str):
                return None
            found.add(call["name"], call.get("arguments", call.get("parameters", {})))
        elif (name := _FUNCTION.match(body)) is not None:
            _add_typed(found, name[1], [(m[1], m[2]) for m in _PARAMETER.finditer(body)], types)
        else:
            name_text = body.partition("<arg_key>")[0].strip()
            if not name_text or "\n" in name_text or "<" in name_text:
                return None
            _add_typed(found, name_text, [(m[1], m[2]) for m in _ARGUMENT.finditer(body)], types)
    return found


_FUNCTION = TextPattern(r"<function=([^>\n]+)>")
_PARAMETER = TextPattern(r"(?s)<parameter=([^>\n]+)>\n(.*?)\n</parameter>")
_ARGUMENT = TextPattern(r"(?s)<arg_key>(.*?)</arg_key>\s*<arg_value>(.*?)</arg_value>")


def _add_typed(found: WrittenCalls, name: str, written: list[tuple[str, str]], types: Types) -> None:
    arguments = {}
    for key, text in written:
        value = _json(text)
        kind = types.get((name, key))
        is_text = value is _NO_JSON or kind == "string"
        arguments[key] = text if is_text else value
        found.is_lossy |= kind is None and value is not _NO_JSON and not isinstance(value, dict | list)
    found.add(name, arguments)


def _python(text: str, types: Types) -> WrittenCalls | None:
    """LFM2: `<|tool_call_start|>[look_up(order='7')]<|tool_call_end|>`."""
    stretches = _between(text, "<|tool_call_start|>", "<|tool_call_end|>")
    if stretches is None:
        return None
    found = WrittenCalls(_around(text, stretches))
    for _, _, inner in stretches:
        try:
            tree = ast.parse(inner.strip(), mode="eval").body
            for call in tree.elts if isinstance(tree, ast.List) else [tree]:
                if not isinstance(call, ast.Call) or call.args:
                    return None
                found.add(
                    ast.unparse(call.func), {str(key.arg): _literal(key.value) for key in call.keywords}
                )
        except (SyntaxError, ValueError, RecursionError, MemoryError):
            return None
    return found


def _literal(node: ast.AST) -> Any:
    """A Python literal, in which JSON's names stand too. Raises ValueError for anything else."""
    if isinstance(node, ast.Name) and node.id in _JSON_NAMES:
        return _JSON_NAMES[node.id]
    if isinstance(node, ast.Dict):
        return {
            str(_literal(key)): _literal(value)
            for key, value in zip(node.keys, node.values, strict=True)
            if key is not None
        }
    if isinstance(node, ast.List | ast.Tuple):
        return [_literal(element) for element in node.elts]
    value = ast.literal_eval(node)
    if value is None or isinstance(value, str | int | float):
        return value
    raise ValueError("no value that JSON has")


_JSON_NAMES = {"true": True, "false": False, "null": None}


def _gemma(text: str, types: Types) -> WrittenCalls | None:
    """Gemma 4: `<|tool_call>call:look_up{order:<|"|>7<|"|>}<tool_call|>`, keys in order of the alphabet."""
    stretches = _between(text, "<|tool_call>", "<tool_call|>")
    if stretches is None:
        return None
    found = WrittenCalls(_around(text, stretches))
    for _, _, inner in stretches:
        name, brace, rest = inner.removeprefix("call:").partition("{")
        arguments = read_gemma_object(brace + rest)
        if arguments is None:
            return None
        found.add(name, arguments)
        found.is_lossy |= len(arguments) > 1
    return found


def _deepseek(text: str, types: Types) -> WrittenCalls | None:
    stretches = _between(text, "<｜tool▁call▁begin｜>", "<｜tool▁call▁end｜>")
    if stretches is None:
        return None
    around = _around(text, stretches)
    for mark in ("<｜tool▁calls▁begin｜>", "<｜tool▁calls▁end｜>"):
        around = around.replace(mark, "")
    found = WrittenCalls(around.strip("\n"))
    for _, _, inner in stretches:
        first, _, rest = inner.partition("<｜tool▁sep｜>")
        name, fence, arguments = rest.partition("\n```json\n")
        if fence:
            found.add(name.strip(), arguments.strip().removesuffix("```").strip())
        else:
            found.add(first.strip(), rest.strip())
    return found


def _mistral(text: str, types: Types) -> WrittenCalls | None:
    """`[TOOL_CALLS] [{"name", "arguments", "id"}]`, or `[TOOL_CALLS]name[ARGS]{...}` for each."""
    before, mark, rest = text.partition("[TOOL_CALLS]")
    if not mark:
        return None
    found = WrittenCalls(before.strip())
    calls = _json(rest.strip())
    if isinstance(calls, list):
        for call in calls:
            if not isinstance(call, dict) or not isinstance(call.get("name"), str):
                return None
            found.add(call["name"], call.get("arguments", {}), call.get("id"))
        return found
    for written in rest.split("[TOOL_CALLS]"):
        head, has_args, arguments = written.partition("[ARGS]")
        if not has_args:
            head, brace, arguments = written.partition("{")
            arguments = brace + arguments
        name, _, call_id = head.partition("[CALL_ID]")
        if not isinstance(_json(arguments.strip()), dict):
            return None
        found.add(name.strip(), arguments.strip(), call_id.strip() or None)
    return found


def _invoked(text: str, types: Types) -> WrittenCalls | None:
    """`<ns:function_calls>` with `<ns:invoke name=...>` and `<ns:parameter name=...>`."""
    block = _INVOCATIONS.search(text)
    if block is None:
        return None
    found = WrittenCalls((text[: block.start()].rstrip("\n") + text[block.end() :]).strip())
    for invoked in _INVOKE.finditer(block[1]):
        _add_typed(found, invoked[1], [(m[1], m[2]) for m in _NAMED.finditer(invoked[2])], types)
    return found


_INVOCATIONS = TextPattern(r"(?s)<(?:[a-z]+:)?function_calls>(.*?)</(?:[a-z]+:)?function_calls>")
_INVOKE = TextPattern(r'(?s)<(?:[a-z]+:)?invoke name="([^"]*)">(.*?)</(?:[a-z]+:)?invoke>')
_NAMED = TextPattern(r'(?s)<(?:[a-z]+:)?parameter name="([^"]*)">(.*?)</(?:[a-z]+:)?parameter>')


def _bare(text: str) -> WrittenCalls | None:
    call = _json(text.strip().removeprefix("<|python_tag|>").strip())
    if not isinstance(call, dict) or not isinstance(call.get("name"), str):
        return None
    arguments = call.get("parameters", call.get("arguments"))
    if not isinstance(arguments, dict) or len(call) != 2:
        return None
    found = WrittenCalls("")
    found.add(call["name"], arguments)
    return found


class _NoJson:
    """What text that is no JSON decodes to: null is a value."""


_NO_JSON = _NoJson()


def _refuse(constant: str) -> float:
    raise ValueError(constant)


def _json(text: str) -> Any:
    try:
        return json.loads(text, parse_constant=_refuse)  # NaN is no JSON
    except (ValueError, RecursionError):
        return _NO_JSON
