"""Objects of AutoGen: what a team or an agent did ({"messages": [...], "stop_reason"}), states of teams and agents,
recorded calls of its model clients ({"mode", "messages", "response"}), and chats of version 0.2 (`chat_history`).

Messages name who spoke (`source`, in 0.2 `name`): `user` and names that begin so are people, all others are agents. The
state of a team has a thread of messages (`message_thread`), that of an agent the messages of its model
(`llm_context`); each is a trajectory, and those of the agents name the team as their `parent`.
"""

from collections.abc import Iterator
from typing import Any

from apps.trajectories.formats.placed import MessageReader, object_at, objects, placed, storable, text_at
from workers.errors import InvalidRecord
from workers.schema import Task, Trajectory
from workers.schema.decode import require_object
from workers.schema.framework_messages import AUTOGEN, is_person
from workers.schema.messages import build_trajectory

SIGN = (
    "`messages` of AutoGen (a `type` such as TextMessage), a state of a team or an agent, or a `chat_history`"
)
_PARENT = "touchstone_parent"  # of a state that was split off: the name of the one around it
_NAME = "touchstone_name"


def sniff(document: Any) -> bool:
    if not isinstance(document, dict):
        return False
    return bool(_messages(document)[0]) or bool(objects([document.get("agent_states")]))


def is_message(value: Any) -> bool:
    return (
        isinstance(value, dict)
        and "role" not in value
        and str(value.get("type")) in AUTOGEN
        and "content" in value
    )


def _messages(document: dict[str, Any]) -> tuple[list[Any], str]:
    """The messages that an object holds, and where."""
    for at in ("messages", "message_thread", "llm_context", "chat_history", "task_result"):
        value = document.get(at)
        if isinstance(value, dict) and isinstance(value.get("messages"), list):
            at, value = f"{at}/messages", value["messages"]
        if not isinstance(value, list) or not value or not isinstance(value[0], dict):
            continue
        if is_message(value[0]) or (at == "chat_history" and "role" in value[0]):
            return value, f"/{at}"
    return [], ""


def split(document: Any) -> Iterator[tuple[str, Any]]:
    """The threads of a team, then the messages of its agents; nested teams too."""
    states = object_at(document, "agent_states")
    if not states:
        yield "", document
        return
    found = list(_states(states, "/agent_states"))
    threads = [each for each in found if "message_thread" in each[2]]
    parent = threads[0][1] if threads else ""
    for pointer, name, state in [*threads, *(each for each in found if each not in threads)]:
        around = {} if state is (threads[0][2] if threads else None) else {_PARENT: parent}
        yield pointer, state | {_NAME: name} | {key: value for key, value in around.items() if value}
    if not found:
        yield "", document


def _states(states: dict[str, Any], pointer: str) -> Iterator[tuple[str, str, dict[str, Any]]]:
    """(pointer, name, state) of each state that has messages. Agents are in a container with the name of their own."""
    for name, state in states.items():
        at = f"{pointer}/{name.replace('~', '~0').replace('/', '~1')}"
        while isinstance(state, dict) and isinstance(state.get("agent_state"), dict):
            state, at = state["agent_state"], f"{at}/agent_state"
        if not isinstance(state, dict):
            continue
        if inner := object_at(object_at(state, "inner_team_state") or state, "agent_states"):
            yield from _states(inner, at)
        elif _messages(state)[0]:
            yield at, name.split("/")[0], state


@storable
def read(document: Any) -> Trajectory:
    document = require_object(document)
    messages, at = _messages(document)
    if not messages:
        raise InvalidRecord(
            "it is a state of AutoGen without messages, so it holds no run; save it after a run."
        )
    found = placed(messages, at)
    if at == "/chat_history":
        found = [(pointer, _of_old_chat(message)) for pointer, message in found]
    response = object_at(document, "response") if "mode" in document else {}
    if response:
        found.append(("/response", {"type": "AssistantMessage", "content": ""} | response))
    steps, facts = CONVERSATION.read(found)
    known = ("messages", "message_thread", "llm_context", "chat_history", _PARENT, _NAME, "task_result")
    around = {
        key: value for key, value in document.items() if key not in known and value not in (None, [], {})
    }
    if "response" in around and response:
        around["response"] = {
            key: value for key, value in response.items() if key not in ("content", "usage")
        }
    parent = {"parent": document[_PARENT]} if _PARENT in document else {}
    name = text_at(document, _NAME)
    agents = list(dict.fromkeys(step.speaker for step in steps if step.source == "agent" and step.speaker))
    agent = name if "llm_context" in document else agents[0] if len(agents) == 1 else ""
    return build_trajectory(steps, Task(id=""), agent=agent, metadata=facts | around | parent, pointer=at)


def _speaker(message: dict[str, Any]) -> str:
    return text_at(message, "source") or (
        text_at(message, "name") if "content" in message and "type" not in message else ""
    )


def _of_old_chat(message: Any) -> Any:
    """In version 0.2 roles say from whose side a message was logged, names who it is from."""
    if not isinstance(message, dict) or message.get("role") in ("tool", "function", "system"):
        return message
    name = message.get("name")
    if isinstance(name, str) and name:
        return message | {"role": "user" if is_person(name) else "assistant"}
    return message


CONVERSATION = MessageReader(
    _speaker,
    lambda message: message.get("models_usage") or message.get("usage"),
    consumed=("source", "models_usage", "usage"),
)
