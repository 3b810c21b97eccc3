"""Cline and Roo Code: api_conversation_history.json, the session of Cline's SDK, and ui_messages.json.

The history is a list of Anthropic's messages, with `ts`, `modelInfo` and `metrics` in newer versions; a session of the
SDK holds them as `messages` next to {"version", "sessionId", "agent", "system_prompt"}. Older versions write calls as
text (<read_file><path>...</path></read_file>), which the next message of the user answers. ui_messages.json is what was
shown: [{"ts", "type": "say" | "ask", "say" or "ask": what, "text"}].
"""

from typing import Any

from msgspec.structs import replace

from apps.trajectories.formats.coding_agents.cline_texts import is_screen_message, screen_messages, text_call
from apps.trajectories.formats.coding_agents.session import first_text, prompt_task, summed_metrics
from apps.trajectories.formats.coding_agents.text_calls import tagged, with_observations, with_text_call
from apps.trajectories.formats.event_log import event_log
from apps.trajectories.formats.stated import call_metrics, run_facts
from workers.schema import Part, Step, Trajectory, clean, from_messages
from workers.schema.decode import require_list
from workers.schema.messages import build_trajectory

SIGN = "Cline's messages: a list that begins with <task>, a session with `sessionId` and `messages`, or `say` and `ask`"
_ASKED = ("task", "user_message", "user_input")
_MARKS = ("<task>", "<user_message>", "<user_input", "<environment_details>")
_TO_PEOPLE = ("ask_followup_question", "attempt_completion", "plan_mode_respond", "new_task", "switch_mode")
_USAGE = {"inputTokens": "input_tokens", "outputTokens": "output_tokens"}
READ = ("/messages/*/metrics", "/*/metrics", "/*/type", "/*/say", "/*/ask")
Gathered = event_log()


def sniff(document: Any) -> bool:
    if isinstance(document, dict):
        messages = document.get("messages")
        is_session = isinstance(messages, list) and "sessionId" in document and "projectHash" not in document
        return is_screen_message(document) or (
            is_session and ("agent" in document or "updated_at" in document)
        )
    if not isinstance(document, list) or not document or not isinstance(document[0], dict):
        return False
    if is_screen_message(document[0]):
        return True
    first = document[0]
    return first.get("role") == "user" and any(mark in text for text in _texts(first) for mark in _MARKS)


def _texts(message: dict[str, Any]) -> list[str]:
    content = message.get("content")
    blocks = content if isinstance(content, list) else [content]
    texts = [block.get("text") if isinstance(block, dict) else block for block in blocks]
    return [text for text in texts if isinstance(text, str)]


def read(document: Any) -> Trajectory:
    items, _ = clean(require_list(document))
    session: dict[str, Any] = items[0] if len(items) == 1 and isinstance(items[0], dict) else {}
    if not isinstance(session.get("messages"), list):
        session = {}
    messages: list[Any] = session.get("messages") or items
    others: list[Any] = []
    if not session and all(map(is_screen_message, messages)):
        messages, others = screen_messages(messages)
    steps = from_messages([_with_files(message) for message in messages])
    steps = with_observations(tuple(map(_with_call, steps)))
    steps = tuple(map(_with_metrics, steps))
    prompt = session.get("system_prompt")
    if isinstance(prompt, str) and prompt:
        first = from_messages([{"role": "system", "content": prompt}])[0]
        steps = (replace(first, extra={"field": "system_prompt"}), *steps)
    usage = {_USAGE.get(key, key): value for key, value in summed_metrics(steps).items()}
    models = [(step.extra.get("message") or {}).get("modelInfo") for step in steps]
    cost = {"cost": usage.pop("cost")} if "cost" in usage else {}
    facts = run_facts(cost, usage, model=first_text(models, "id", "modelId"))
    around = {key: value for key, value in session.items() if key not in ("messages", "system_prompt")}
    metadata = facts | around | {"usage": usage | facts.get("usage", {}), "events": others}
    return build_trajectory(
        steps,
        prompt_task(map(_asked, steps)),
        id=first_text([session], "sessionId") or None,
        agent="Cline",
        metadata={key: value for key, value in metadata.items() if value not in ("", [], {}, None)},
    )


def _asked(step: Step) -> Step:
    """A prompt without what the client put around it."""
    found = tagged(step.text, _ASKED) if step.source == "user" else []
    return replace(step, message=(Part(text=found[0].inner),)) if found else step


def _with_files(message: Any) -> Any:
    """A message whose files are their text, which is what the model was shown."""
    content = message.get("content") if isinstance(message, dict) else None
    if not isinstance(content, list):
        return message
    return message | {"content": [_file_text(block) for block in content]}


def _file_text(block: Any) -> Any:
    if isinstance(block, dict) and block.get("type") == "file" and isinstance(block.get("content"), str):
        rest = {key: value for key, value in block.items() if key not in ("type", "content")}
        return {"type": "text", "text": block["content"]} | rest
    return block


def _with_call(step: Step) -> Step:
    if step.source != "agent" or step.tool_calls:
        return step
    text, call = text_call(step.text)
    if call is not None and call.name in _TO_PEOPLE:
        return step  # a person answers, or there is no answer
    return with_text_call(step, call, text)


def _with_metrics(step: Step) -> Step:
    message = step.extra.get("message")
    metrics = message.get("metrics") if isinstance(message, dict) else None
    return step if step.source != "agent" or metrics is None else replace(step, metrics=call_metrics(metrics))
