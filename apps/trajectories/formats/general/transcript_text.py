"""Conversations written as text, whose lines name who speaks: `User: ...`, `**Assistant:** ...`, `## Human`,
`[USER]`, `=== assistant ===`, `<|im_start|>user`, `<user> ...`, each with a time before it or not.

Marks are those of speakers whose role is known by name; of several further names that begin lines none is a speaker,
but where no agent is known and only one name begins lines often, it is the agent's. A text has to begin with a mark but
for a few lines, and has to have a person and an agent. What stands before the first mark is `preamble`.
"""

from collections import Counter
from typing import Any, NamedTuple

from apps.trajectories.formats.general.speaker_names import marked_role
from apps.trajectories.formats.text_kind import TextKind
from workers.errors import InvalidRecord
from workers.schema.patterns import TextPattern

_NAME = r"[\pL][\pL\pN_ .'-]{0,38}?"
_TIME = r"(?:[\[(]?\d[\d:T .,/+Z-]{3,32}[\])]?[ \t]*[-|,:]?[ \t]*)?"
_TURN = r"(?:[ \t]*(?:#|\()?(?:turn |Turn )?\d{1,4}\)?)?"
# A name before a colon, in bold or not; a name that is a heading, in brackets, or between dashes and the like.
_COLON = TextPattern(
    rf"^[ \t>]*(?:#{{1,6}} |- )?{_TIME}(?:\*\*|__)?\[?({_NAME}){_TURN}\]?(?:\*\*|__)?:(?:\*\*|__)?(?:[ \t]+|$)"
)
_HEADING = TextPattern(
    rf"^[ \t]*(?:#{{1,6}}|[=*<>~-]{{2,80}}|\[|<\|(?:im_start\|>|start_header_id\|>)?)[ \t]*({_NAME}){_TURN}[ \t]*"
    r"(?:[=*<>~-]{2,80}|\]|(?:<\|end_header_id)?\|>)?:?[ \t]*$"
)
_TAG = TextPattern(rf"^[ \t]*(?:<\|?({_NAME})\|?>)[ \t]*")  # in front of what is said, on its line
END_MARKS = ("<|im_end|>", "<|eot_id|>", "<|end|>")
_MOST_PREAMBLE = 10  # lines that are not empty
_LEAST_OTHER = 2  # times that a name which is not known begins a line
_LEAST_TURNS = 3  # of speakers whose names may be fields of a log too
_SURE = frozenset(
    ("user", "human", "customer", "assistant", "ai", "bot", "chatbot", "gpt", "chatgpt", "claude")
)
_NOT_TEXT = ("{", "[{", "<?xml", "<!doctype", "<html", "%PDF")


class SpokenLine(NamedTuple):
    """name: of who speaks; empty where the line goes on with what was begun. mark: as it stands in the line."""

    name: str
    mark: str
    text: str


class SpokenTurn(NamedTuple):
    speaker: str
    text: str
    mark: str

    def as_turn(self) -> dict[str, Any]:
        """mark: where it says more than the name of the speaker, such as a time."""
        plain = self.mark.strip(" \t\r\n:*_#[]=<>|-~")
        return {"speaker": self.speaker, "text": self.text} | (
            {"mark": self.mark} if plain != self.speaker else {}
        )


def conversation(text: str) -> tuple[str, list[SpokenTurn]] | None:
    """What stands before the first turn, and the turns; None for a text that is no conversation of a person and an
    agent who are known."""
    lines = [_spoken_line(line) for line in text.splitlines(keepends=True)]
    counts = Counter(line.name for line in lines if line.name)
    roles = {name: marked_role(name) for name in counts}
    speakers = {name for name, role in roles.items() if role}
    if not {"user", "assistant"} & {roles[name] for name in speakers}:
        return None
    if "assistant" not in (known := {roles[name] for name in speakers}):
        others = [name for name, count in counts.items() if not roles[name] and count >= _LEAST_OTHER]
        if len(others) != 1 or sum(counts[name] for name in speakers) < _LEAST_OTHER:
            return None
        speakers.add(others[0])
    elif "user" not in known:
        return None
    return _turns(lines, speakers)


def _spoken_line(line: str) -> SpokenLine:
    for pattern in (_COLON, _HEADING, _TAG):
        bare = line.rstrip("\r\n")
        mark = pattern.match(bare) if len(bare) < 2**16 else pattern.match(bare[:200])
        if mark is not None:
            return SpokenLine(mark[1].strip(), bare[: mark.end()], line[mark.end() :])
    return SpokenLine("", "", line)


def _turns(lines: list[SpokenLine], speakers: set[str]) -> tuple[str, list[SpokenTurn]] | None:
    before: list[str] = []
    turns: list[SpokenTurn] = []
    for line in lines:
        if line.name in speakers:
            turns.append(SpokenTurn(line.name, line.text, line.mark))
        elif turns:
            last = turns[-1]
            turns[-1] = last._replace(text=last.text + line.mark + line.text)
        else:
            before.append(line.mark + line.text)
    if sum(bool(each.strip()) for each in before) > _MOST_PREAMBLE:
        return None
    found = [turn._replace(text=_bare(turn.text)) for turn in turns]
    found = [turn for turn in found if turn.text]
    has_both = len({turn.speaker for turn in found}) > 1
    are_sure = {turn.speaker.lower() for turn in found} & _SURE
    if len(found) < _LEAST_TURNS and len(are_sure) < 2:  # it may be `User: root` and `Model: small` of a log
        return None
    return ("".join(before).strip(), found) if has_both else None


def _bare(text: str) -> str:
    text = text.strip()
    for end in END_MARKS:
        text = text.removesuffix(end).rstrip()
    return text


def turns_document(text: str) -> dict[str, Any] | None:
    """A conversation as `turns` reads it."""
    found = conversation(text)
    if found is None:
        return None
    before, turns = found
    return ({"preamble": before} if before else {}) | {"turns": [turn.as_turn() for turn in turns]}


def _begins(head: str) -> bool:
    return not head.lstrip()[:9].lower().startswith(_NOT_TEXT) and conversation(head) is not None


def _read(lines: list[str]) -> Any:
    found = turns_document("".join(lines))
    if found is None:
        raise InvalidRecord("names no person and agent who speak in turns.")
    return found


TRANSCRIPT = TextKind("a conversation written as text", _begins, lambda line: False, _read)
