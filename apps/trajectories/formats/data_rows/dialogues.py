r"""Dialogues that are one text: "\n\nHuman: ...\n\nAssistant: ..." of Anthropic's data, "<extra_id_1>" of HelpSteer."""

from dataclasses import dataclass

from apps.trajectories.formats.data_rows.trainer_rows import Messages
from workers.schema.patterns import TextPattern

_TURN = TextPattern(r"(?:\A\s*|\n\n)(Human|Assistant):")
_STEERED = TextPattern(r"\n?<extra_id_1>(User|Assistant)\n")
_ROLES = {"Human": "user", "User": "user", "Assistant": "assistant"}


@dataclass(frozen=True, slots=True)
class DialogueTurn:
    """text: as it stands in the dialogue, with who speaks; the texts of all turns make it up."""

    role: str
    content: str
    text: str


def dialogue_turns(text: str) -> list[DialogueTurn] | None:
    """None for a text that is no dialogue."""
    marks = list(_TURN.finditer(text))
    if not marks or marks[0].start() > 0:
        return None
    ends = [*(mark.start() for mark in marks[1:]), len(text)]
    return [
        DialogueTurn(_ROLES[mark[1]], text[mark.end() : end].strip(), text[mark.start() : end])
        for mark, end in zip(marks, ends, strict=True)
    ]


def dialogue_prompt(text: str) -> Messages:
    """A prompt: a dialogue, of which an empty last turn only asks for the answer, or the text of a user."""
    turns = dialogue_turns(text)
    if turns is None:
        return _steered_prompt(text)
    if turns[-1].role == "assistant" and not turns[-1].content:
        turns = turns[:-1]
    return [{"role": turn.role, "content": turn.content} for turn in turns]


def _steered_prompt(text: str) -> Messages:
    pieces = _STEERED.split(text)
    found = [{"role": "user", "content": pieces[0]}] if pieces[0] else []
    found += [
        {"role": _ROLES[who], "content": said} for who, said in zip(pieces[1::2], pieces[2::2], strict=True)
    ]
    return (
        found[:-1]
        if len(found) > 1 and found[-1]["role"] == "assistant" and not found[-1]["content"]
        else found
    )
