"""ToolBench's answers: {"win", "tree" | "trys", "answer_generation": {"query", "function", "train_messages", ...}}; and
as ToolEval converts them, {"ID": {"query", "available_tools", "answer": {"method", "answer_details"}}}.

What the agent did is the last of `train_messages`, which is the path through the search that ended it; of a search that
found no end, the last try or the longest branch. `win` says that the agent gave an answer, not that it is right.
"""

import ast
import json
from collections.abc import Iterator
from typing import Any

from apps.trajectories.formats.stated import run_facts
from workers.errors import InvalidRecord
from workers.schema import Task, Trajectory, clean, from_messages
from workers.schema.decode import escape, optional_str, require_list, require_object
from workers.schema.messages import build_trajectory

SIGN = "an object with an `answer_generation`, or with `query` and an `answer` that has `answer_details`"
_BRANCHES = "branches of the search that the answer does not follow, and the texts they were ranked by"
LEFT_OUT = {f"/{key}": _BRANCHES for key in ("tree", "trys", "compare_candidates")}
READ = ("/answer/answer_details", "/answer_generation/chain", "/answer_generation/query")
REPEATED = ("/answer_generation/train_messages",)
_MOST_TEXT, _DEEPEST = 1_000_000, 200


def sniff(document: Any) -> bool:
    return _is_answer(document) or _is_converted(document) or _is_set(document)


def _is_answer(value: Any) -> bool:
    return isinstance(value, dict) and isinstance(value.get("answer_generation"), dict)


def _is_converted(value: Any) -> bool:
    answer = value.get("answer") if isinstance(value, dict) and "query" in value else None
    return isinstance(answer, dict) and "answer_details" in answer


def _is_set(value: Any) -> bool:
    return isinstance(value, dict) and bool(value) and all(map(_is_converted, [*value.values()][:3]))


def split(document: Any) -> Iterator[tuple[str, Any]]:
    if not _is_set(document):
        yield "", document
        return
    for name, each in document.items():
        yield f"/{escape(str(name))}", {"id": name} | each if isinstance(each, dict) else each


def read(document: Any) -> Trajectory:
    document, _ = clean(require_object(document))
    if _is_converted(document):
        return _converted(document)
    given = require_object(document.get("answer_generation"), pointer="/answer_generation")
    lists = require_list(given.get("train_messages") or [], pointer="/answer_generation/train_messages")
    query = optional_str(given.get("query"), pointer="/answer_generation/query") or ""
    if lists:
        at = f"/answer_generation/train_messages/{len(lists) - 1}"
        steps = from_messages(lists[-1], pointer=at)
    else:
        at = "/answer_generation"
        steps = from_messages(_of_nodes(_last_path(document), query), pointer=at)
    known = ("query", "function", "train_messages", "chain")
    rest = {key: value for key, value in given.items() if key not in known and value is not None}
    around = {
        key: document[key] for key in ("win", "try_count", "total_tokens", "forward_args") if key in document
    }
    tools = {"tools": given["function"]} if given.get("function") else {}
    instruction = query or next((step.text.strip() for step in steps if step.source == "user"), "")
    return build_trajectory(
        steps,
        Task(id="", instruction=instruction),
        pointer=at,
        metadata=around | {"answer_generation": rest} | tools | run_facts(given),
    )


def _last_path(document: dict[str, Any]) -> list[Any]:
    """Nodes of the last try, or from the root of the tree to the leaf that finished, else to the deepest one."""
    given = require_object(document["answer_generation"], pointer="/answer_generation")
    tries = document.get("trys")
    chain = given.get("chain") or (tries[-1] if isinstance(tries, list) and tries else None)
    if isinstance(chain, dict):
        chain = chain.get("chain")
    if isinstance(chain, list) and chain:
        return chain
    tree = document.get("tree")
    root = tree.get("tree") if isinstance(tree, dict) else None
    return max(_paths(root), key=lambda path: (bool(path[-1].get("finished")), len(path)), default=[])


def _paths(root: Any) -> Iterator[list[Any]]:
    """From the root to each leaf."""
    waiting: list[tuple[Any, list[Any]]] = [(root, [])]
    while waiting:
        node, before = waiting.pop()
        if not isinstance(node, dict) or len(before) > _DEEPEST:
            continue
        path = [*before, node]
        children = node.get("children")
        if isinstance(children, list) and children:
            waiting += [(child, path) for child in reversed(children)]
        else:
            yield path


def _of_nodes(nodes: list[Any], query: str) -> list[Any]:
    """Nodes of the search, each a thought, the name of an action, or its arguments with what it gave, as messages."""
    messages: list[Any] = [{"role": "user", "content": query}] if query else []
    thought, name = None, ""
    for node in nodes:
        kind, text = (
            (node.get("node_type"), node.get("description")) if isinstance(node, dict) else (None, None)
        )
        if kind == "Thought":
            messages += [] if thought is None else [{"role": "assistant", "content": thought}]
            thought = text
        elif kind == "Action":
            name = text if isinstance(text, str) else ""
        elif kind == "Action Input" and name:
            call = {"name": name, "arguments": text if isinstance(text, str) else ""}
            messages.append({"role": "assistant", "content": thought, "function_call": call})
            if node.get("observation") is not None:
                messages.append({"role": "function", "name": name, "content": node["observation"]})
            thought, name = None, ""
    return messages if thought is None else [*messages, {"role": "assistant", "content": thought}]


def _converted(document: dict[str, Any]) -> Trajectory:
    answer = require_object(document["answer"], pointer="/answer")
    query = optional_str(document.get("query"), pointer="/query") or ""
    messages: list[Any] = []
    waiting = list(require_list(answer["answer_details"], pointer="/answer/answer_details"))
    while waiting:
        node = require_object(waiting.pop(0), pointer="/answer/answer_details")
        messages += _of_detail(node)
        waiting = list(require_list(node.get("next") or [], pointer="/answer/answer_details")) + waiting
        if len(messages) > 10_000:
            raise InvalidRecord("has over 10,000 messages.", pointer="/answer/answer_details")
    if not any(message["role"] == "user" for message in messages) and query:
        messages.insert(0, {"role": "user", "content": query})
    name = document.get("id")
    rest = {key: value for key, value in answer.items() if key != "answer_details" and value is not None}
    tools = {"tools": document["available_tools"]} if document.get("available_tools") else {}
    return build_trajectory(
        from_messages(messages, pointer="/answer/answer_details"),
        Task(id=str(name) if isinstance(name, str | int) else "", instruction=query),
        pointer="/answer/answer_details",
        agent=optional_str(answer.get("method"), pointer="/answer/method") or "",
        metadata={"answer": rest} | tools,
    )


def _of_detail(node: dict[str, Any]) -> list[Any]:
    role, message = node.get("role"), node.get("message")
    if role != "tool":
        return [{"role": role, "content": message}] if message else []
    given = _literal(message) if isinstance(message, str) else message
    if not isinstance(given, dict) or not isinstance(given.get("name"), str):
        return [
            {"role": "assistant", "content": message if isinstance(message, str) else json.dumps(message)}
        ]
    arguments = given.get("arguments")
    arguments = arguments if isinstance(arguments, str) else json.dumps(arguments, ensure_ascii=False)
    calls: list[Any] = [
        {
            "role": "assistant",
            "content": None,
            "function_call": {"name": given["name"], "arguments": arguments},
        }
    ]
    response = given.get("response")
    if response in (None, ""):
        return calls
    text = response if isinstance(response, str) else json.dumps(response, ensure_ascii=False)
    return [*calls, {"role": "function", "name": given["name"], "content": text}]


def _literal(text: str) -> Any:
    """What Python's `str` made of an object; None of anything else."""
    if len(text) > _MOST_TEXT or not text.startswith("{"):
        return None
    try:
        return ast.literal_eval(text)
    except (ValueError, SyntaxError, RecursionError, MemoryError):
        return None
