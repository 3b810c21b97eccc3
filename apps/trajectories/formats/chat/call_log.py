"""Logs of calls of model APIs: each record has the request and the response of one call.

{"request": {...}, "response": {...}} as proxies and tracers write them, the bodies as objects, as JSON text, as the
text of a stream, or as an SDK's objects with their types (Llama Stack); the lines of batches of OpenAI ({"custom_id",
"body"} and {"custom_id", "response": {"body"}}) and Anthropic ({"custom_id", "params"} and {"custom_id", "result":
{"message"}}), where the lines of a `custom_id` are one call; and an answer of HTTP alone ({"status",
"headers", "body"}).
"""

from typing import Any

from apps.trajectories.formats.chat import plain_answers
from apps.trajectories.formats.chat.event_frames import framed_events
from apps.trajectories.formats.chat.model_call import ModelCall, is_request, is_response, outcome, read_call
from apps.trajectories.formats.chat.stream_events import assembled, kind_of
from apps.trajectories.formats.event_log import ALONE, event_log
from apps.trajectories.formats.placed import objects, storable, text_at
from workers.errors import InvalidRecord
from workers.schema import Trajectory
from workers.schema.bounded import loads

SIGN = "an object with a `request` and a `response` of a model API, or with `custom_id`"
READ = ("/*/reward", "/*/success")
_HEADERS = ("headers", "rawHeaders", "reqheaders")
_NO_HEADERS = "headers of HTTP, which may hold keys"
LEFT_OUT = {"/*/response/body_raw": "the text of a stream, whose answer is read put together"}
LEFT_OUT |= {f"{at}/{name}": _NO_HEADERS for name in _HEADERS for at in ("", "/*")}
_ENVELOPE = "__data__"  # of an object of an SDK, next to its `__type__`, as Llama Stack records calls
_REQUESTS = ("request", "params", "body", "kwargs", "api_request", "provider_request")
_RESPONSES = ("response", "result", "api_response", "provider_response")
_BODIES = ("body", "payload", "message", "json", "data", "content", _ENVELOPE)
_DEEPEST = 3


def sniff(document: Any) -> bool:
    if not isinstance(document, dict) or isinstance(document.get("messages"), list):
        return False
    (asked, _), (answered, _) = _sides(document)
    if _is_answer(document):
        return True
    if "custom_id" in document:
        return bool(asked or answered) or any(key in document for key in ("response", "result", "error"))
    if "method" in document and not asked:  # recorded answers of a client (Gemini CLI)
        return bool(answered)
    return bool(asked) and bool(answered or document.get("response"))


def has_answer(call: Any) -> bool:
    """Whether it has the answer of a model, not only a request that looks like one."""
    return sniff(call) and bool(_sides(call)[1][0])


Gathered = event_log(key=lambda call: text_at(call, "custom_id") or ALONE)


@storable
def read(document: Any) -> Trajectory:
    """document: the records of one call. Raises InvalidRecord."""
    records = objects(document) if isinstance(document, list) else objects([document])
    request: tuple[dict[str, Any], str] = ({}, "")
    response: tuple[Any, str] = (None, "")
    about: dict[str, Any] = {}
    for index, record in enumerate(records):
        at = f"/{index}" if isinstance(document, list) else ""
        asked, answered = _sides(record)
        if not request[0] and asked[0]:
            request = asked[0], at + asked[1]
        if answered[0]:
            response = answered[0], at + answered[1]
        known = (*_REQUESTS, *_RESPONSES, *_HEADERS)
        about |= {key: value for key, value in record.items() if key not in known}
        _refuse_error(record, at)
    if response[0] is None and not request[0]:
        raise InvalidRecord("has neither a request nor a response of a model API that is known.")
    custom = about.pop("custom_id", None)
    given = {"id": custom} if isinstance(custom, str) and custom else {}
    call = ModelCall(request[0], response[0], request[1], response[1], about)
    return read_call(call, **outcome(about), **given)


def _refuse_error(record: dict[str, Any], at: str) -> None:
    """Raises InvalidRecord for a call that failed."""
    for key in _RESPONSES:
        answer = record.get(key)
        status = answer.get("status_code") if isinstance(answer, dict) else None
        kind = answer.get("type") if key == "result" and isinstance(answer, dict) else None
        if (isinstance(status, int) and status >= 400) or kind in ("errored", "canceled", "expired"):
            raise InvalidRecord(
                f"the call failed ({kind or f'status {status}'}), so there is no answer to read; leave it out.",
                pointer=f"{at}/{key}",
            )
    if record.get("error") and not _response(record)[0]:
        raise InvalidRecord(
            f"the call failed ({str(record['error'])[:200]}), so there is no answer to read; leave it out.",
            pointer=f"{at}/error",
        )


def _is_answer(record: dict[str, Any]) -> bool:
    """Whether it is an answer of HTTP alone: {"status", "headers", "body"}."""
    return "body" in record and "status" in record and "response" not in record


def _sides(record: dict[str, Any]) -> tuple[tuple[dict[str, Any], str], tuple[Any, str]]:
    """The request and the response of a record, each with its place; those of a completion where it has both."""
    if _is_answer(record) and (answered := _response({"response": record["body"]}))[0]:
        return ({}, ""), (answered[0], answered[1].replace("/response", "/body", 1))
    request, response = _request(record), _response(record)
    if request[0] and response[0]:
        return request, response
    prompt = _found(record, _REQUESTS, lambda value: bool(plain_answers.prompt_name(value)))
    answer = _found(record, _RESPONSES, lambda value: plain_answers.answer_path(value) is not None)
    request = request if request[0] else prompt
    response = response if response[0] else answer if request[0] else (None, "")
    return (request, response) if response[0] else (_request(record), response)


def _found(record: dict[str, Any], keys: tuple[str, ...], is_found: Any) -> tuple[dict[str, Any], str]:
    for key in keys:
        found, at = _unwrapped(record.get(key), is_found)
        if found:
            return found, f"/{key}{at}"
    return {}, ""


def _request(record: dict[str, Any]) -> tuple[dict[str, Any], str]:
    return _found(record, _REQUESTS, is_request)


def _response(record: dict[str, Any]) -> tuple[Any, str]:
    for key in _RESPONSES:
        value = record.get(key)
        found, at = _unwrapped(value, is_response)
        if found:
            return found, f"/{key}{at}"
        if isinstance(value, list) and (found := streamed_answer(_without_envelopes(value))):
            return found, f"/{key}"
        bodies = (value, value.get("body") if isinstance(value, dict) else None)
        if events := next(filter(None, map(framed_events, bodies)), None):
            return assembled(events), f"/{key}"
        for name in ("body_raw", "body"):
            streamed = value.get(name) if isinstance(value, dict) else value if name == "body" else None
            if found := streamed_answer(_without_envelopes(streamed)):
                return found, f"/{key}"
    value = record.get("response")
    is_text = isinstance(value, str) and value and value[:1] not in "{[" and not value.startswith("data:")
    if is_text and (found := streamed_answer(value)):
        return found, "/response"
    return (value, "/response") if is_text else (None, "")


def _without_envelopes(value: Any) -> Any:
    if isinstance(value, list):
        return [each.get(_ENVELOPE, each) if isinstance(each, dict) else each for each in value]
    return value


def _unwrapped(value: Any, is_found: Any, depth: int = 0) -> tuple[Any, str]:
    """The request or response, at most a few bodies deep; JSON in a text too."""
    if isinstance(value, str) and value[:1] == "{" and depth < _DEEPEST:
        try:
            value = loads(value)
        except ValueError:
            return None, ""
    if not isinstance(value, dict):
        return None, ""
    if is_found(value):
        return value, ""
    for key in _BODIES if depth < _DEEPEST else ():
        found, at = _unwrapped(value.get(key), is_found, depth + 1)
        if found:
            return found, f"/{key}{at}"
    return None, ""


def streamed_answer(value: Any) -> Any:
    """The response that the text or the list of a stream's events has; None for anything else."""
    if isinstance(value, str) and ("data:" in value[:200] or value[:1] == "{"):
        events = []
        for line in value.splitlines():
            text = line.removeprefix("data:").strip()
            if text[:1] != "{":
                continue
            try:
                events.append(loads(text))
            except ValueError:
                continue
        value = events
    if isinstance(value, list) and value and all(map(kind_of, value[:2])):
        return assembled(objects(value))
    return None
