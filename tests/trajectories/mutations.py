"""Documents with something broken in them, and what becomes of them."""

import copy
import io
import json
import random
from collections.abc import Sequence
from typing import Any

from django.db import connection, transaction

from apps.accounts.models import Project
from apps.trajectories import formats, services
from apps.trajectories.formats.record import Record
from apps.trajectories.import_reader import ImportReader, read_import_records
from apps.trajectories.models import Step, Trajectory
from apps.trajectories.selectors import load_trajectories
from apps.trajectories.writer import PreparedTrajectory
from tests.trajectories import test_otel as spans
from tests.trajectories.benchmarks import run_documents as some
from tests.trajectories.benchmarks.documents import DOCUMENTS as AGENT_DATA
from tests.trajectories.coding_agents import examples as coding_agents
from tests.trajectories.computer_use.documents import DOCUMENTS as COMPUTER_USE
from tests.trajectories.data_rows.row_documents import ROWS
from tests.trajectories.frameworks.documents import DOCUMENTS as OF_FRAMEWORKS
from tests.trajectories.general.documents import DOCUMENTS as GENERAL
from tests.trajectories.real_files import comes_back
from tests.trajectories.test_tape import TAPE
from tests.trajectories.tracing import documents as traces
from workers.errors import InvalidRecord

_PIECES = [b"\x00", b"\xff\xfe", b"\\ud800", b"\\u0000", b'"', b"[[[[", b"1e999", b"\n{}\n"]
JUNK: list[Any] = [None, 1, -1, True, "x", "", [], {}, [1], {"a": 1}, 1e400]
DOCUMENTS: dict[str, Any] = {
    **COMPUTER_USE,
    **AGENT_DATA,
    **ROWS,
    **GENERAL,
    "atif": {
        "schema_version": "ATIF-v1.5",
        "session_id": "s1",
        "agent": {"name": "desk", "version": "1"},
        "steps": [
            {"step_id": 1, "source": "user", "message": "Where is it?"},
            {
                "step_id": 2,
                "source": "agent",
                "message": "I look.",
                "reasoning_content": "Hm.",
                "tool_calls": [{"tool_call_id": "c1", "function_name": "look", "arguments": {"order": 7}}],
                "observation": {"results": [{"source_call_id": "c1", "content": "in Ulm"}]},
                "metrics": {"prompt_tokens": 5},
            },
            {"step_id": 3, "source": "agent", "message": "In Ulm."},
        ],
    },
    "prompt-response": {"prompt": [{"role": "user", "content": "Hi"}], "response": "Hello", "task": "t"},
    "tau-bench": some.TAU,
    "openai": [
        {
            "role": "user",
            "content": [{"type": "text", "text": "Hi"}, {"type": "image_url", "image_url": {"url": "x"}}],
        },
        {"role": "assistant", "content": "Hello"},
    ],
    "agentrx": some.TAU,
    "swe-agent": some.SWE,
    "mini-swe-agent": some.MESSAGES,
    "inspect": some.INSPECT,
    "mint": some.MINT,
    "who-and-when": some.WHO,
    "tau2": some.TAU2,
    "gymnasium": some.EPISODE,
    "agent-reward-bench": some.BROWSED,
    "tape": TAPE,
    "autolibra": {
        "instance_id": "7f3a",
        "agent_id": "agent",
        "metadata": {"task": "Buy shoes."},
        "points": [
            {"point_type": "observation", "data": {"content": "Open."}, "timestamp": "t"},
            {"point_type": "action", "data": {"action_type": "click", "element": 1}, "metadata": {"a": 1}},
            {"point_type": "action", "data": "Done."},
        ],
    },
    "otel": spans.traced(
        spans.span(1, spans.chat(spans.ASKED, spans.CALLED)),
        spans.span(2, spans.chat(spans.ASKED + spans.CALLED + spans.TOLD, spans.SAID)),
    ),
    **coding_agents.EXAMPLES,
    **traces.EXAMPLES,
    **OF_FRAMEWORKS,
}

# Files that are no JSON, by what they are.
TEXTS: dict[str, bytes] = {
    "a transcript": (
        b"User: How cold is it in Oslo?\nIt matters.\n\nAssistant: Minus three.\n\n"
        b"User: And in Ulm?\n\nAssistant: Two degrees.\n"
    ),
    "a transcript in Markdown": (
        b"**User:** How cold?\n\n**Assistant:** Minus three.\n\n**User:** Sure?\n\n**Assistant:** Yes.\n"
    ),
    "a run of ReAct": (
        b"Question: Where was the order sent?\nThought: I should look.\nAction: look[7]\nObservation: in Ulm\n"
        b"Thought: I know it now.\nAction: finish[Ulm]\nObservation: Episode finished, reward = 1\n"
    ),
    "a YAML file": (
        b"task: t\nmessages:\n- role: user\n  content: Where is it?\n- role: assistant\n  content: I look.\n"
        b"  tool_calls:\n  - id: c1\n    type: function\n    function: {name: look, arguments: '{}'}\n"
        b"- role: tool\n  tool_call_id: c1\n  content: |\n    in Ulm\n- role: assistant\n  content: In Ulm.\n"
    ),
    "a cassette": (
        b'interactions:\n- request:\n    body: \'{"model": "m", "prompt": "Why?"}\'\n    uri: https://example.org\n'
        b'  response:\n    body:\n      string: \'{"generation": "Because.", "stop_reason": "stop"}\'\nversion: 1\n'
    ),
    "a history of Aider": (
        b"> Applied edit to a.py\n\n#### /exit\n\n# aider chat started at 2025-01-02 10:00:00\n\n"
        b"> Aider v0.80.0\n\n#### Rename it\n\nDone as you asked.\n\n> Commit abc rename\n"
    ),
}


def broken(value: Any, dice: random.Random) -> Any:
    """With one thing in it replaced."""
    if isinstance(value, dict) and value:
        key = dice.choice(list(value))
        value[key] = copy.deepcopy(dice.choice(JUNK)) if dice.random() < 0.35 else broken(value[key], dice)
    elif isinstance(value, list) and value:
        place = dice.randrange(len(value))
        value[place] = copy.deepcopy(dice.choice(JUNK)) if dice.random() < 0.2 else broken(value[place], dice)
    else:
        return copy.deepcopy(dice.choice(JUNK))
    return value


def mutated(raw: bytes, dice: random.Random) -> bytes:
    """Most often with one to three values replaced, else with bytes of it cut, turned over, doubled or put in.

    raw: one document on one line, or JSON lines."""
    if dice.random() < 0.7:
        lines = raw.splitlines() if b"\n" in raw else [raw]  # JSON has no line ends in its strings
        for _ in range(dice.randint(1, 3)):
            place = dice.randrange(len(lines))
            lines[place] = json.dumps(broken(json.loads(lines[place]), dice)).encode()
        return b"\n".join(lines)
    return _edited(raw, dice)


def mutated_text(raw: bytes, dice: random.Random) -> bytes:
    """Lines left out, doubled, moved or put behind one another, or bytes as of JSON."""
    if dice.random() < 0.5:
        return _edited(raw, dice)
    lines = raw.splitlines(keepends=True)
    for _ in range(dice.randint(1, 3)):
        place, other = dice.randrange(len(lines)), dice.randrange(len(lines))
        kind = dice.randrange(4)
        if kind == 0 and len(lines) > 1:
            del lines[place]
        elif kind == 1:
            lines.insert(other, lines[place])
        elif kind == 2:
            lines[place], lines[other] = lines[other], lines[place]
        else:
            lines[place] = lines[place].rstrip(b"\n")
    return b"".join(lines)


def _edited(raw: bytes, dice: random.Random) -> bytes:
    out, place = bytearray(raw), dice.randrange(len(raw))
    length = dice.randint(1, 40)
    kind = dice.randrange(5)
    if kind == 0:
        return bytes(out[:place])
    if kind == 1:
        del out[place : place + length]
    elif kind == 2:
        out[place] ^= 1 << dice.randrange(8)
    elif kind == 3:
        out[place:place] = out[place : place + length]
    else:
        out[place:place] = dice.choice(
            [b"\x00", b"\xff\xfe", b"\\ud800", b"\\u0000", b'"', b"[[[[", b"1e999", b"\n{}\n"]
        )
    return bytes(out)


class KeepingReader(ImportReader):
    """Keeps the trajectory of which it prepared rows last: to read it again takes as long."""

    trajectory: Any = None

    def read_fields(self, record: Record) -> Any:
        self.trajectory, uses = super().read_fields(record)
        return self.trajectory, uses


def read_or_refused(raw: bytes, name: str | None) -> tuple[list[PreparedTrajectory], list[InvalidRecord]]:
    """Anything else that comes of it is a mistake of ours, and raised. name: of a format; None to detect it."""
    reader, good, bad = KeepingReader(None if name is None else formats.FORMATS[name]), [], []
    records = [part for record in read_import_records(io.BytesIO(raw)) for part in reader.parts(record)]
    for part in [*records, *reader.rest()]:
        try:
            prepared = reader.prepare(part)
            assert comes_back(reader.trajectory)
            good.append(prepared)
        except InvalidRecord as error:
            assert error.message
            bad.append(error)
    return good, bad


def stored_whole(project: Project, prepared: Sequence[PreparedTrajectory]) -> None:
    """What was read can be written, every step of it, and read again; nothing of it is kept."""
    with transaction.atomic():
        written = services.store_prepared(project=project, source_format="atif", prepared=prepared)
        stored = dict(zip(written.keys, prepared, strict=True))
        rows = dict(Trajectory.objects.filter(project=project).values_list("pk", "content_hash"))
        assert rows == {key: item.content_hash for key, item in stored.items()}
        assert len(rows) == written.created
        assert Step.objects.filter(trajectory__in=rows).count() == sum(
            len(item.steps) for item in stored.values()
        )
        found = load_trajectories(list(rows))
        assert all(found[key].content_hash == digest for key, digest in rows.items())
        with connection.cursor() as cursor:
            cursor.execute("SET CONSTRAINTS ALL IMMEDIATE")
        transaction.set_rollback(True)
