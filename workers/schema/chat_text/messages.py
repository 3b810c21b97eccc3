"""Turns of a rendered conversation as chat messages: reasoning, tool calls, results and pictures included."""

import json
from typing import Any

from workers.schema.chat_text.formats import ChatFormat
from workers.schema.chat_text.gemma_values import read_gemma_object
from workers.schema.chat_text.preambles import Preamble, declare_tools, strip_llama_tools, strip_preamble
from workers.schema.chat_text.strict_values import NO_JSON, read_json, read_python, whole_matches
from workers.schema.chat_text.thinking import split_thinking
from workers.schema.chat_text.tool_calls import WrittenCalls, is_call_id, is_tool_name, read_calls
from workers.schema.chat_text.turns import Turn, is_inline
from workers.schema.patterns import TextPattern

Json = dict[str, Any]
_PICTURES = TextPattern(
    r"(?:<\|vision_start\|>)?(?:<\|image_pad\|>|<start_of_image>|<image_soft_token>|<\|image\|>|<image>|\[IMG\]|<\|patch\|>|"
    r"<\|image_\d+\|>|<fake_token_around_image>)+(?:<\|vision_end\|>)?\n?"
)
_RESPONSES = TextPattern(r"(?s)<tool_response>\n?(.*?)\n?</tool_response>")
_OUTPUT = TextPattern(r'(?s)\A<tool_output(?: name="([^"]*)")?>\n?(.*?)\n?</tool_output>\s*\z')
_LFM = TextPattern(r"(?s)\A<\|tool_response_start\|>(.*)<\|tool_response_end\|>\z")
_NO_REASONING = TextPattern(r"\A\s*</think>\n*")  # DeepSeek V3.1 begins an answer without reasoning with it
_COHERE = TextPattern(r"<\|(?:START|END)_(?:RESPONSE|TEXT)\|>")
_LLAMA_2_SYSTEM = TextPattern(r"(?s)\A\s*<<SYS>>\n?(.*?)\n?<</SYS>>\s*")


class MessageReader:
    """For one conversation, fed in order. flags: what the text does not tell for certain."""

    def __init__(self, format_: ChatFormat) -> None:
        self.format = format_
        self._preamble = Preamble()
        self._seen_user = False
        self._lossy = False
        self._unclosed = False

    @property
    def flags(self) -> set[str]:
        """`template_lossy`: the template has dropped something, or written it so that it means two things."""
        flags = self._preamble.flags | ({"template_lossy"} if self._lossy else set())
        return flags | ({"reasoning_unclosed"} if self._unclosed else set())

    def read(self, turns: list[Turn], *, is_followed: bool = False) -> list[Json]:
        """is_followed: a turn of the agent's comes after these."""
        messages: list[Json] = []
        for turn in turns:
            for message in self._messages(turn):
                if self._continues(messages, turn, message):
                    messages[-1] = _merged(messages[-1], message)
                else:
                    messages.append(message)
        last = {"role": "assistant"} if is_followed else None
        self._lossy |= any(map(_is_dropped, messages, [*messages[1:], last]))
        return messages

    def _continues(self, messages: list[Json], turn: Turn, message: Json) -> bool:
        """Harmony writes reasoning, preambles and each call as turns of their own."""
        if not self.format.continues or not messages or message["role"] != "assistant":
            return False
        last = messages[-1]
        return last["role"] == "assistant" and not last.get("content") and not _is_answered(last, message)

    def _messages(self, turn: Turn) -> list[Json]:
        if turn.role == "tools":
            declare_tools(turn.body, self._preamble)
            return []
        if turn.role == "system":
            return self._system(turn)
        if turn.role == "user":
            return self._user(turn)
        return self._tool(turn) if turn.role == "tool" else self._assistant(turn)

    def _system(self, turn: Turn) -> list[Json]:
        found = _LLAMA_2_SYSTEM.match(turn.body)
        body = found[1] if found is not None and found.end() == len(turn.body) else turn.body
        text = strip_preamble(body, self._preamble, has_instructions=self.format.name == "harmony")
        return [{"role": "system", "content": text}] if text else []

    def _user(self, turn: Turn) -> list[Json]:
        body = turn.body
        if (results := whole_matches(_RESPONSES, body)) is not None:
            return [{"role": "tool", "content": result[1]} for result in results]
        messages = []
        if (system := _LLAMA_2_SYSTEM.match(body)) is not None:
            messages.append({"role": "system", "content": system[1]})
            body = body[system.end() :]
        elif self.format.no_system and not self._seen_user and "\n\n" in body:
            self._lossy = True  # a system message may be part of it
        if not self._seen_user and self.format.name == "llama3":
            body = strip_llama_tools(body, self._preamble)
        self._seen_user = True
        return [*messages, {"role": "user", "content": _with_pictures(body, strips=self.format.strips)}]

    def _tool(self, turn: Turn) -> list[Json]:
        body = turn.body
        if (output := _OUTPUT.match(body)) is not None and (not output[1] or is_tool_name(output[1])):
            named = {"name": output[1]} if output[1] else {}
            return [{"role": "tool", **named, "content": output[2]}]
        if (results := whole_matches(_RESPONSES, body)) is not None:
            return [{"role": "tool", "content": result[1]} for result in results]
        if (marked := _LFM.match(body)) is not None:
            return [{"role": "tool", "content": marked[1]}]
        if turn.written == "<|tool_response>":
            return [self._inline_result(body)]
        name = turn.name.removeprefix("functions.")
        named = {"name": name} if name else {}
        if self.format.name == "mistral":
            return _mistral_results(body)
        is_json = self.format.name in ("harmony", "llama3")
        return [{"role": "tool", **named, "content": _json_text(body) if is_json else body}]

    def _inline_result(self, body: str) -> Json:
        name, brace, rest = body.removeprefix("response:").partition("{")
        value = read_gemma_object(brace + rest) if is_tool_name(name) else None
        if value is not None and value.keys() == {"value"} and isinstance(value["value"], str):
            return {"role": "tool", "name": name, "content": value["value"]}
        self._lossy = True
        if value is None:
            return {"role": "tool", "content": body}
        return {"role": "tool", "name": name, "content": json.dumps(value, ensure_ascii=False)}

    def _assistant(self, turn: Turn) -> list[Json]:
        body = turn.body
        if self.format.name == "harmony":
            return [self._harmony(turn, body)]
        if self.format.name == "cohere":
            body = _COHERE.sub("", body)
        if is_inline(turn) and "<|channel>thought" in body.strip()[1:]:
            self._lossy = True  # the text of an earlier turn stands after the results of its calls
        message: Json = {"role": "assistant"}
        body = _NO_REASONING.sub("", body)
        thinking = split_thinking(body)
        if thinking is not None and turn.opened.strip() and not thinking.after:
            # The template opened the reasoning, and nothing closed it: the response alone has no mark either.
            body, self._unclosed = thinking.reasoning, True
            thinking = None
        if thinking is not None:
            body = thinking.text
            if thinking.reasoning:
                message["reasoning_content"] = thinking.reasoning
        calls = self._calls(body)
        message["content"] = calls.text
        if calls.calls:
            message["tool_calls"] = calls.calls
        return [message]

    def _calls(self, body: str) -> WrittenCalls:
        found = read_calls(body, self._preamble.types, self.format.calls)
        self._lossy |= found.is_lossy
        return found

    def _harmony(self, turn: Turn, body: str) -> Json:
        calls = self._calls(body)
        if calls.calls:
            return {"role": "assistant", "content": calls.text, "tool_calls": calls.calls}
        if turn.recipient not in ("", "self", "user", "all"):
            function = {"name": turn.recipient.removeprefix("functions."), "arguments": body}
            return {
                "role": "assistant",
                "content": "",
                "tool_calls": [{"type": "function", "function": function}],
            }
        if turn.channel == "analysis" or turn.recipient == "self":
            return {"role": "assistant", "content": "", "reasoning_content": body}
        if not turn.channel and not turn.recipient and body.startswith(("analysis", "commentary", "final")):
            self._lossy = True  # decoded without special tokens, so that reasoning and answer run together
        return {"role": "assistant", "content": body}


def _is_dropped(message: Json, following: Json | None) -> bool:
    """Whether a template has left out what the message was: calls it does not know, or parts it cannot write."""
    content = message["content"]
    if message["role"] == "assistant" and not message.get("tool_calls") and following is not None:
        is_empty = not content and not message.get("reasoning_content")
        return is_empty or following["role"] == "tool"
    return message["role"] == "user" and not content


def _merged(first: Json, second: Json) -> Json:
    merged = first | second
    reasoning = [text for text in (first.get("reasoning_content"), second.get("reasoning_content")) if text]
    if reasoning:
        merged["reasoning_content"] = "\n".join(reasoning)
    calls = [*first.get("tool_calls", []), *second.get("tool_calls", [])]
    return merged | ({"tool_calls": calls} if calls else {})


def _is_answered(last: Json, message: Json) -> bool:
    """Whether a call stands before words: then those are another step."""
    return bool(last.get("tool_calls")) and not message.get("tool_calls")


def _mistral_results(body: str) -> list[Json]:
    """JSON with `content` and `call_id`, a list of such, or `id[TOOL_CONTENT]text`."""
    call_id, mark, content = body.partition("[TOOL_CONTENT]")
    if mark and is_call_id(call_id.strip()):
        return [{"role": "tool", "tool_call_id": call_id.strip(), "content": content}]
    found = read_json(body)
    messages = []
    for result in found if isinstance(found, list) and found else [found]:
        if not isinstance(result, dict) or "content" not in result or not _is_result(result):
            return [{"role": "tool", "content": body}]
        content = result["content"]
        named = {"tool_call_id": result["call_id"]} if "call_id" in result else {}
        text = content if isinstance(content, str) else json.dumps(content, ensure_ascii=False)
        messages.append({"role": "tool", **named, "content": text})
    return messages


def _is_result(result: Json) -> bool:
    return result.keys() <= {"content", "call_id"} and (
        "call_id" not in result or is_call_id(result["call_id"])
    )


def _json_text(body: str) -> str:
    """The text of a JSON string; any other text as it is."""
    value = read_json(body) if body.startswith('"') else NO_JSON
    return value if isinstance(value, str) else body


def _with_pictures(body: str, *, strips: bool) -> Any:
    """Content parts where the text has the place marks of pictures, or the parts themselves."""
    if (written := _written_parts(body)) is not None:
        return written
    if _PICTURES.search(body) is None:
        return body
    parts: list[Json] = []
    at = 0
    for found in _PICTURES.finditer(body):
        parts += [_text_part(body[at : found.start()], strips), {"type": "image"}]
        at = found.end()
    parts.append(_text_part(body[at:], strips))
    return [part for part in parts if part.get("text") != ""]


def _text_part(text: str, strips: bool) -> Json:
    return {"type": "text", "text": text.strip() if strips else text}


def _written_parts(body: str) -> list[Json] | None:
    """Content parts that a template for plain text wrote as they are, as JSON or as Python shows them."""
    if not body.startswith("[{") or "type" not in body[:_FIRST_KEY]:
        return None
    for parts in (read_json(body), read_python(body)):
        if isinstance(parts, list) and all(map(_is_part, parts)):
            return parts
    return None


def _is_part(part: Any) -> bool:
    """A text, or a picture that its address names."""
    if not isinstance(part, dict):
        return False
    kind, rest = part.get("type"), {key: value for key, value in part.items() if key != "type"}
    if kind == "text":
        return rest.keys() == {"text"} and isinstance(rest["text"], str)
    url = rest.get(str(kind), "")
    url = url["url"] if isinstance(url, dict) and url.keys() == {"url"} else url
    return kind in ("image", "image_url") and rest.keys() <= {kind} and isinstance(url, str)


_FIRST_KEY = 16
