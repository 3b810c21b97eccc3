"""Notes of experience that a language model distils from scored groups: guidelines for a policy that is not trained."""

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Generic, TypeVar

from touchstone_client.search.running import Scored

T = TypeVar("T")
_LONGEST = 400  # characters of a note

_PROMPT = """You keep short notes for an agent, so that it does better on tasks like this one.
Below are two attempts at one task: a reward model scored the first higher than the second.

Notes so far:
{notes}

Task:
{task}

Attempt with the higher score ({high:.3f}):
{good}

Attempt with the lower score ({low:.3f}):
{bad}

What did the first do that the second did not, said so that it helps with other tasks of this kind?
Answer with a JSON array of changes to the notes, at most three, and nothing else:
[{{"op": "add", "note": "..."}}, {{"op": "replace", "id": 2, "note": "..."}}, {{"op": "remove", "id": 1}}]
A note is one sentence of at most {longest} characters. Answer [] where nothing is to be learnt.
"""


class NotesRefused(ValueError):
    """The language model's answer is no list of changes. answer: what it wrote."""

    def __init__(self, message: str, answer: str) -> None:
        super().__init__(message)
        self.answer = answer


@dataclass
class ExperienceNotes(Generic[T]):
    """Notes by number, for the guidelines of a policy (`str(notes)`).

    write: a language model: text in, text out. show: a candidate as text for it. most: notes kept; where more are
    added, the oldest goes. least_gap: groups whose best and worst differ by less teach nothing (reward units).

    Training-Free GRPO (arXiv 2510.08191): the group's advantage becomes words in place of a gradient.
    """

    write: Callable[[str], str]
    show: Callable[[T], str] = str
    most: int = 20
    least_gap: float = 0.1
    notes: dict[int, str] = field(default_factory=dict)

    def learn(self, task: str, group: Sequence[Scored[T]]) -> bool:
        """Changes the notes by one group of candidates for a task; False where the group teaches nothing.

        Raises NotesRefused, and changes nothing, where the answer cannot be read.
        """
        if not group:
            return False
        best, worst = (
            max(group, key=lambda scored: scored.reward),
            min(group, key=lambda scored: scored.reward),
        )
        if best.reward - worst.reward < self.least_gap:
            return False
        answer = self.write(
            _PROMPT.format(
                notes=str(self) or "(none)",
                task=task,
                high=best.reward,
                low=worst.reward,
                good=self.show(best.value),
                bad=self.show(worst.value),
                longest=_LONGEST,
            )
        )
        self.notes = self._changed(answer)
        return True

    def __str__(self) -> str:
        return "\n".join(f"{number}. {note}" for number, note in self.notes.items())

    def _changed(self, answer: str) -> dict[int, str]:
        notes = dict(self.notes)
        for place, change in enumerate(_changes(answer)):
            where = f"change {place + 1} of the answer"
            op = change.get("op")
            if op in ("replace", "remove") and change.get("id") not in notes:
                raise NotesRefused(f"{where}: there is no note {change.get('id')!r}", answer)
            if op == "remove":
                del notes[change["id"]]
            elif op in ("add", "replace"):
                number = change["id"] if op == "replace" else max(notes, default=0) + 1
                notes[number] = _note(change, where, answer)
            else:
                raise NotesRefused(f"{where}: op is {op!r}; it must be add, replace or remove", answer)
        while len(notes) > self.most:
            del notes[min(notes)]
        return notes


def _changes(answer: str) -> list[Mapping[str, Any]]:
    """The JSON array in an answer, which may stand in a fence or after a sentence."""
    start, end = answer.find("["), answer.rfind("]")
    try:
        found = json.loads(answer[start : end + 1])
    except ValueError as error:
        raise NotesRefused(f"the answer has no JSON array of changes ({error})", answer) from error
    if not isinstance(found, list) or not all(isinstance(change, dict) for change in found):
        raise NotesRefused("the answer is no JSON array of objects", answer)
    return found


def _note(change: Mapping[str, Any], where: str, answer: str) -> str:
    note = change.get("note")
    if not isinstance(note, str) or not note.strip():
        raise NotesRefused(f"{where}: it has no note", answer)
    return " ".join(note.split())[:_LONGEST]
