"""Events of LangChain (`astream_events`, and of callbacks): {"event": "on_chat_model_end" | "on_llm_end" |
"on_tool_start" | "on_tool_end" | ..., "name", "run_id", "data", "metadata", "parent_ids" | "parent_run_id"}.

An answer of a model is its `output` (a message, or generations), after the messages of its `input` that were not there
before; a call of a tool is told by the answer, or by its own start. Pieces of answers (on_chat_model_stream) are left
out, and so is what chains pass on.
"""

from typing import Any

from apps.trajectories.formats.event_log import event_log
from apps.trajectories.formats.frameworks import langchain
from apps.trajectories.formats.placed import MessageReader, Placed, object_at, objects, storable, text_at
from workers.errors import InvalidRecord
from workers.schema import Task, Trajectory
from workers.schema.decode import require_list
from workers.schema.message_parts import result_content
from workers.schema.messages import build_trajectory

SIGN = (
    "events with a `run_id` and an `event` such as on_chat_model_end, on_llm_end or on_tool_end, of LangChain"
)
Message = dict[str, Any]
_MODEL_STARTS, _MODEL_ENDS = ("on_chat_model_start", "on_llm_start"), ("on_chat_model_end", "on_llm_end")
_TOOL_STARTS, _TOOL_ENDS = "on_tool_start", ("on_tool_end", "on_tool_error")
_PIECES = ("on_chat_model_stream", "on_llm_stream", "on_llm_new_token", "on_chain_stream", "on_parser_stream")
LEFT_OUT = {"/*/data/chunk": "a piece of an answer as it was streamed; the answer is read"}
READ = ("/*/event", "/*/name", "/*/data/input")


def _is_event(value: Any) -> bool:
    if not isinstance(value, dict) or not isinstance(value.get("event"), str) or "run_id" not in value:
        return False
    kind = value["event"]
    return kind.startswith("on_") and kind.endswith(
        ("_start", "_end", "_stream", "_error", "_token", "_text")
    )


def _is_answer(event: Any) -> bool:
    return isinstance(event, dict) and event.get("event") in (*_MODEL_ENDS, *_TOOL_ENDS, _TOOL_STARTS)


def _run(event: Any) -> str | None:
    """The task that the metadata names, where it does."""
    about = object_at(event, "metadata")
    return text_at(about, "thread_id", "session_id", "task_id") or None


Gathered = event_log(key=_run, answers=_is_answer)


def sniff(document: Any) -> bool:
    if isinstance(document, list):
        return bool(document) and all(map(_is_event, document[:3]))
    return _is_event(document)


@storable
def read(document: Any) -> Trajectory:
    events = objects(require_list(document))
    reader = _EventReader()
    for index, event in enumerate(events):
        reader.add(f"/{index}/data", event)
    if not reader.messages:
        raise InvalidRecord(
            "has no answers of a model and no calls of tools, so it holds no run; leave it out."
        )
    steps, facts = MessageReader(
        usage=lambda message: message.get("usage_metadata") or message.get("usage"),
        model=lambda message: text_at(object_at(message, "response_metadata"), "model_name", "model"),
    ).read(reader.messages)
    root = next(iter(events), {})
    return build_trajectory(
        steps,
        Task(id=""),
        id=_run(root) or text_at(root, "run_id") or None,
        agent=text_at(root, "name"),
        metadata=facts | ({"events": reader.others} if reader.others else {}),
    )


class _EventReader:
    def __init__(self) -> None:
        self.messages: list[Placed] = []
        self.others: list[Message] = []
        self._known: list[Any] = []  # messages that an answer or an input had
        self._calls: list[Message] = []  # of the last answer, which the starts of tools repeat
        self._started: dict[str, str] = {}  # ids of calls, by the run of the tool

    def add(self, pointer: str, event: Message) -> None:
        kind, data = event.get("event"), object_at(event, "data")
        if kind in _MODEL_STARTS:
            self._add_input(pointer, data)
        elif kind in _MODEL_ENDS:
            self._add_input(pointer, data)
            self._add_answers(pointer, data.get("output", data))
        elif kind == _TOOL_STARTS:
            self._add_call(pointer, event, data.get("input"))
        elif kind in _TOOL_ENDS:
            self._add_result(pointer, event, data)
        others = {key: value for key, value in event.items() if key != "data"}
        rest = _unread(kind, data)
        self.others.append(others | ({"data": rest} if rest else {}))

    def _add_input(self, pointer: str, data: Message) -> None:
        for message in _input_messages(data):
            if langchain.is_message(message) and not any(_is_same(message, each) for each in self._known):
                self._known.append(message)
                self.messages.append((f"{pointer}/input/messages", message))

    def _add_answers(self, pointer: str, output: Any) -> None:
        message = _answer_of(output)
        if message is None:
            return
        self._known.append(message)
        self._calls = list(objects(_content_of(message).get("tool_calls")))
        self.messages.append((pointer, message))

    def _add_call(self, pointer: str, event: Message, given: Any) -> None:
        name = text_at(event, "name")
        told = next((call for call in self._calls if call.get("name") == name), None)
        if told is not None:
            self._calls.remove(told)
            self._started[str(event.get("run_id"))] = str(told.get("id") or "")
            return
        identity = str(event.get("run_id"))
        self._started[identity] = identity
        arguments = given if isinstance(given, dict) else {} if given is None else {"input": given}
        function = {"name": name, "arguments": arguments}
        call = {"id": identity, "type": "function", "function": function}
        self.messages.append((pointer, {"role": "assistant", "content": None, "tool_calls": [call]}))

    def _add_result(self, pointer: str, event: Message, data: Message) -> None:
        output = data.get("output", data.get("error"))
        inner = _content_of(output) if isinstance(output, dict) else {}
        if inner and langchain.is_message(output) and not any(_is_same(output, each) for each in self._known):
            self._known.append(output)
        is_message = bool(inner) and langchain.is_message(output)
        content = inner.get("content", output) if is_message else output
        rest = (
            {key: value for key, value in inner.items() if key not in ("content", "type")}
            if is_message
            else {}
        )
        identity = self._started.get(str(event.get("run_id"))) or inner.get("tool_call_id")
        about = {"tool_call_id": identity, "name": text_at(event, "name")}
        self.messages.append((pointer, rest | {"role": "tool", "content": result_content(content)} | about))


def _input_messages(data: Message) -> list[Any]:
    """The messages that a model was given, of the first of several prompts."""
    given = object_at(data, "input").get("messages")
    given = given[0] if isinstance(given, list) and given and isinstance(given[0], list) else given
    return given if isinstance(given, list) else []


def _unread(kind: Any, data: Message) -> Message:
    """What an event has besides its messages and pieces; the arguments of a tool may be those of the answer."""
    rest = {
        key: value for key, value in data.items() if key not in ("chunk", "output", "input", "generations")
    }
    given, output = data.get("input"), data.get("output")
    if kind in (*_MODEL_STARTS, *_MODEL_ENDS) and isinstance(given, dict):
        is_read = all(map(langchain.is_message, _input_messages(data)))
        given = {key: value for key, value in given.items() if key != "messages" or not is_read}
    if given not in (None, "", [], {}):
        rest["input"] = given
    is_read = kind in _TOOL_ENDS or isinstance(output, str) or langchain.is_message(output)
    return rest if output is None or is_read else rest | {"output": output}


def _answer_of(output: Any) -> Message | None:
    """The message of an answer: itself, or the first of generations; a text as a message."""
    if isinstance(output, str):
        return {"type": "ai", "content": output}
    if langchain.is_message(output):
        return dict(output)
    held = output.get("generations") if isinstance(output, dict) else None
    while isinstance(held, list) and held:
        held = held[0]
    if isinstance(held, str):
        return {"type": "ai", "content": held}
    if not isinstance(held, dict):
        return None
    message = object_at(held, "message")
    if langchain.is_message(message):
        return message
    return {"type": "ai", "content": held["text"]} if isinstance(held.get("text"), str) else None


def _content_of(message: Message) -> Message:
    """What a message holds, out of its constructor."""
    return object_at(message, "kwargs", "data") or message


def _is_same(message: Any, other: Any) -> bool:
    first, second = _content_of(message), _content_of(other)
    if first.get("id") and first.get("id") == second.get("id"):
        return True
    return first.get("content") == second.get("content") and first.get("tool_calls") == second.get(
        "tool_calls"
    )
