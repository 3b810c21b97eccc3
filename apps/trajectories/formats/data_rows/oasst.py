"""OpenAssistant: messages with a `parent_id`, one a record, or trees {"message_tree_id", "prompt": {"replies": [...]}}.

A trajectory for each message of the assistant: the thread from the first message of its tree to it. The task is the
thread before it, so that replies to one message are trajectories of one task. Ranks and labels of people are feedback
(`import_feedback --format oasst`).
"""

from collections.abc import Iterator
from typing import Any

from apps.trajectories.formats.data_rows.row_trajectories import (
    OUTCOME_READ,
    required_text,
    row_id,
    row_trajectory,
)
from apps.trajectories.formats.event_log import event_log
from apps.trajectories.formats.record import Record, encoded
from workers.errors import InvalidRecord
from workers.schema import Trajectory, clean
from workers.schema.decode import require_list, require_object

SIGN = "messages with `message_id`, `parent_id` and `text`, or an object with `message_tree_id` and `prompt`"
READ = (*OUTCOME_READ, "/thread/*/message_id")
_ROLES = {"prompter": "user", "assistant": "assistant"}
Message = dict[str, Any]
_UNANSWERED = "a message of a person that no reply of the assistant follows"
_NO_REPLY = "there is no message of the assistant, so there is nothing to judge or score."
_OF_MESSAGES = ("prompt", "thread", "message_tree_id")
_MOST_MESSAGES = 1000  # of a thread: one is as long as its tree is deep


def sniff(document: Any) -> bool:
    if isinstance(document, list):
        return bool(document) and sniff(document[0])
    if not isinstance(document, dict):
        return False
    is_message = {"message_id", "text", "role"} <= document.keys() and (
        "parent_id" in document or "message_tree_id" in document
    )
    is_tree = "message_tree_id" in document and isinstance(document.get("prompt"), dict)
    return is_message or is_tree or isinstance(document.get("thread"), list)


class MessageTrees:
    """The messages of each tree, from wherever they stand, as a record for each reply of the assistant."""

    def __init__(self, limit: int) -> None:
        self._log = event_log(key=_tree_id)(limit)

    def add(self, record: Record) -> None:
        self._log.add(record)

    def ready(self, source: str) -> Iterator[Record]:
        return iter(())  # a tree may go on anywhere

    def records(self) -> Iterator[Record]:
        found = 0
        record = Record(1)
        for record in self._log.records():
            if record.error is not None:
                yield record
                continue
            try:
                messages, about = tree_messages(record.document)
                documents = list(threads(messages, about))
            except InvalidRecord as error:
                yield Record(record.line, record.raw, error=error)
                continue
            found += len(documents)
            yield from (Record(record.line, encoded(document), document) for document in documents)
            yield from (
                Record(record.line, pointer="/text", skipped=_UNANSWERED) for _ in unanswered(messages)
            )
        if not found and record.error is None:
            yield Record(record.line, record.raw, error=InvalidRecord(_NO_REPLY))


Gathered = MessageTrees


def tree_messages(document: Any) -> tuple[dict[str, Message], Message]:
    """The messages of a list of messages and trees by their ids, and what is said of the tree. Raises InvalidRecord."""
    messages: dict[str, Message] = {}
    about: Message = {}
    for event in document if isinstance(document, list) else [document]:
        event = require_object(event)
        if isinstance(event.get("prompt"), dict) or "thread" in event:
            about |= {name: value for name, value in event.items() if name not in _OF_MESSAGES}
        given = event["thread"] if isinstance(event.get("thread"), list) else _messages(event)
        for message in given:
            message = require_object(message)
            _role(message)
            name = str(message.get("message_id", f"number {len(messages)}"))
            if messages.setdefault(name, message) != message:
                raise InvalidRecord(f"two messages have the id {name[:60]}.", pointer="/message_id")
    return messages, about


def threads(messages: dict[str, Message], about: Message) -> Iterator[Message]:
    """Documents {"thread": [message], ...about}. Raises InvalidRecord for threads without an end."""
    for message in messages.values():
        if message["role"] == "assistant":
            yield about | {"thread": _thread(message, messages)}


def unanswered(messages: dict[str, Message]) -> Iterator[Message]:
    """Messages that are in no thread."""
    answered = {
        id(message)
        for reply in messages.values()
        if reply["role"] == "assistant"
        for message in _thread(reply, messages)
    }
    return (message for message in messages.values() if id(message) not in answered)


def read(document: Any) -> Trajectory:
    row, _ = clean(require_object(document))
    thread = [
        require_object(message, pointer=f"/thread/{index}")
        for index, message in enumerate(require_list(row.get("thread"), pointer="/thread"))
    ]
    if not thread:
        raise InvalidRecord("the thread is empty.", pointer="/thread")
    messages = [_chat_message(message, index) for index, message in enumerate(thread)]
    last = thread[-1]
    agent = last.get("model_name")
    return row_trajectory(
        messages[:-1],
        messages[-1:],
        {name: value for name, value in row.items() if name != "thread"},
        known=(),
        metadata={}
        if thread[0].get("parent_id") is None
        else {"thread_begins_after": thread[0]["parent_id"]},
        pointer=f"/thread/{len(thread) - 1}",
        id=row_id(last.get("message_id")),
        agent=agent if isinstance(agent, str) else "",
    )


def _tree_id(event: Any) -> str | None:
    found = event.get("message_tree_id") if isinstance(event, dict) else None
    if (
        found is None
        and isinstance(event, dict)
        and isinstance(event.get("thread"), list)
        and event["thread"]
    ):
        return _tree_id(event["thread"][0])
    return None if found is None else str(found)


def _messages(event: Message) -> Iterator[Message]:
    """The messages of a tree, or the one message that it is, without their replies."""
    root = event.get("prompt")
    left = [(root, None)] if isinstance(root, dict) else [(event, event.get("parent_id"))]
    tree = event.get("message_tree_id")
    while left:
        message, parent = left.pop()
        replies = require_list(message.get("replies") or [], pointer="/replies")
        about = {name: value for name, value in message.items() if name != "replies"}
        if isinstance(root, dict) and about.get("parent_id") not in (None, parent):
            raise InvalidRecord(
                "a reply names another parent than the message it stands below.", pointer="/parent_id"
            )
        yield {"message_tree_id": tree} | about | {"parent_id": parent}
        left += [
            (require_object(reply, pointer="/replies"), message.get("message_id"))
            for reply in reversed(replies)
        ]


def _thread(message: Message, messages: dict[str, Message]) -> list[Message]:
    found = [message]
    while (parent := messages.get(str(found[-1].get("parent_id")))) is not None:
        if len(found) >= _MOST_MESSAGES or parent in found:
            raise InvalidRecord(
                f"the parents of message {str(message.get('message_id'))[:60]} lead in a circle, or to over"
                f" {_MOST_MESSAGES:,} messages.",
                pointer="/parent_id",
            )
        found.append(parent)
    return found[::-1]


def _chat_message(message: Message, index: int) -> dict[str, Any]:
    at = f"/thread/{index}"
    about = {
        name: value for name, value in message.items() if name not in ("role", "text") and value is not None
    }
    try:
        return {"role": _role(message), "content": required_text(message, "text"), "oasst": about}
    except InvalidRecord as error:
        raise error.at(at) from None


def _role(message: Message) -> str:
    role = _ROLES.get(str(message.get("role")))
    if role is None:
        raise InvalidRecord(
            f"unknown role {str(message.get('role'))[:60]!r}; known are prompter and assistant.",
            pointer="/role",
        )
    return role
