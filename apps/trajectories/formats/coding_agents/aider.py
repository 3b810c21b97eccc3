"""Aider's histories: `.aider.chat.history.md` (a session each), and `.aider.llm.history` (a call of a model each).

As Aider reads its chat history (aider/utils.py, `split_chat_history_markdown`): lines that begin with `#### ` are of
the person, those that begin with `> ` of the program, others of the model. A call is `TO LLM` and a time, messages
whose lines begin with their role, and `LLM RESPONSE` with the answer (`format_messages`).
"""

from typing import Any

from apps.trajectories.formats.coding_agents.transcript import (
    Message,
    is_transcript,
    read_transcript,
    stripped,
)
from apps.trajectories.formats.placed import storable
from apps.trajectories.formats.text_kind import TextKind
from workers.schema import Trajectory
from workers.schema.patterns import TextPattern

SIGN = (
    "a file that begins with `# aider chat started at` or has such a line, or begins with `TO LLM` and a time"
)
READ = ("/aider/id", "/messages/*/role")
_CHAT, _ASKED, _ANSWERED, _BREAK = "# aider chat started at ", "TO LLM ", "LLM RESPONSE ", "-------"
_USER, _NOTE = "#### ", "> "
_LATER = TextPattern(
    r"\n# aider chat started at \d{4}-\d\d-\d\d "
)  # of a history whose beginning was cut off
_MODEL = TextPattern(r"(?:Main m|M)odel: (\S+)")
_LOOKED = 2048  # characters
_COST = TextPattern(r"Cost: \$([0-9]+(?:\.[0-9]+)?) message")
_ROLES = ("SYSTEM", "USER", "ASSISTANT", "TOOL", "FUNCTION", "DEVELOPER")


def sniff(document: Any) -> bool:
    return is_transcript(document, "aider")


@storable
def read(document: Any) -> Trajectory:
    return read_transcript(document, "aider", "aider")


def _chat(lines: list[str]) -> Any:
    started = ""
    messages: list[Message] = []
    turn: list[str] = []
    role = ""

    def end_turn() -> None:
        if text := stripped(turn):
            messages.append({"role": role, "content": text})

    for line in lines:
        if line.startswith(_CHAT):
            started = line.removeprefix(_CHAT).strip()
            continue
        kind, text = _line(line)
        kind = "tool" if kind == "assistant" and not (started or messages or role == "user") else kind
        if kind != role:
            end_turn()
            turn, role = [], kind
        turn.append(text)
    end_turn()
    if not any(message["role"] == "assistant" for message in messages):
        return None
    return {"aider": {"started": started} | _facts(messages), "messages": messages}


def _is_cut_off(head: str) -> bool:
    """Whether it is a history without its beginning: its sessions begin later."""
    first = [line for line in head[:_LOOKED].splitlines() if line.strip()][:3]
    return any(line.startswith((_USER, ">")) for line in first) and _LATER.search(head) is not None


def _line(line: str) -> tuple[str, str]:
    """The role, and the text that stands behind its mark."""
    for mark, role in ((_USER, "user"), (_NOTE, "tool")):
        if line.startswith(mark):
            return role, line.removeprefix(mark).rstrip() + "\n"  # it ends lines with two spaces
        if line.rstrip() == mark.rstrip():  # an empty line of a longer text
            return role, "\n"
    return "assistant", line


def _facts(messages: list[Message]) -> Message:
    """The model that the program names at the start; what each answer cost goes to its message."""
    model = ""
    answer: Message = {}
    for message in messages:
        if message["role"] == "assistant":
            answer = message
        if message["role"] != "tool":
            continue
        if not model and (named := _MODEL.search(message["content"])) is not None:
            model = named[1]
        if answer and (cost := _COST.search(message["content"])) is not None:
            answer["usage"] = {"cost": float(cost[1])}
    return {"model": model} if model else {}


def _call(lines: list[str]) -> Any:
    asked, answered = lines[0].removeprefix(_ASKED).strip(), ""
    messages: list[Message] = []
    turn: list[str] = []

    def end_turn() -> None:
        if turn:
            messages.append(_message(turn))

    for line in lines[1:]:
        if line.rstrip() == _BREAK:
            end_turn()
            turn = []
        elif line.startswith(_ANSWERED):
            end_turn()
            turn, answered = [], line.removeprefix(_ANSWERED).strip()
        else:
            turn.append(line)
    end_turn()
    if not answered:
        return None
    return {"aider": {"asked": asked, "answered": answered}, "messages": messages}


def _message(lines: list[str]) -> Message:
    role = next((role for role in _ROLES if lines[0].startswith(role)), "ASSISTANT")
    texts = [line[len(role) :].removeprefix(" ") if line.startswith(role) else line for line in lines]
    return {"role": role.lower(), "content": "".join(texts).rstrip("\r\n")}


CHATS = TextKind(
    "a chat history of Aider",
    lambda head: head.lstrip().startswith(_CHAT) or _is_cut_off(head),
    lambda line: line.startswith(_CHAT),
    _chat,
)
CALLS = TextKind(
    "a history of Aider's calls of models",
    lambda head: head.lstrip().startswith(_ASKED) and f"\n{_BREAK}" in head[:200],
    lambda line: line.startswith(_ASKED),
    _call,
)
