"""From a file to frozen feedback: what each kind of file is, and what is refused before anything is trained."""

import csv
import io
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from django.core.management import call_command

from apps.accounts.models import ApiKey, Project, Scope
from apps.core.errors import DomainError
from apps.demo import quickstart
from apps.demo.feedback_files import FeedbackFile, look_at, parse_columns
from apps.demo.management.commands.quickstart import Command, _slug
from apps.rewards.trainer_snippets import TRAINERS, client_install, trainer_snippets
from apps.trajectories.models import Trajectory

TASKS = 12


def _csv(path: Path, columns: list[str], rows: list[list[Any]]) -> Path:
    text = io.StringIO()
    writer = csv.writer(text)
    writer.writerows([columns, *rows])
    path.write_text(text.getvalue())
    return path


def _lines(path: Path, rows: list[dict[str, Any]]) -> Path:
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return path


def _question(number: int) -> str:
    return f"Question {number}: where is parcel {number * 7}?"


def _pairs(path: Path) -> Path:
    rows = [[_question(n), f"It comes on day {n}.", f"I do not know, number {n}."] for n in range(TASKS)]
    return _csv(path / "pairs.csv", ["prompt", "chosen", "rejected"], rows)


def _conversations(path: Path) -> Path:
    def message(role: str, text: str) -> list[dict[str, str]]:
        return [{"role": role, "content": text}]

    rows = [
        {
            "prompt": message("user", _question(n)),
            "chosen": message("assistant", f"It comes on day {n}."),
            "rejected": message("assistant", f"Wait, number {n}."),
        }
        for n in range(TASKS)
    ]
    return _lines(path / "conversations.jsonl", rows)


def _ratings(path: Path) -> Path:
    scores = ("helpfulness", "correctness", "coherence", "complexity", "verbosity")
    rows = [
        {"prompt": _question(n), "response": f"On day {n}.", **dict.fromkeys(scores, n % 5)}
        for n in range(TASKS)
    ]
    return _lines(path / "ratings.jsonl", rows)


def _traces(path: Path) -> Path:
    rows = [
        {
            "task_id": f"parcel-{n}",
            "success": n % 2 == 0,
            "messages": [
                {"role": "user", "content": _question(n)},
                {"role": "assistant", "content": f"On day {n}."},
            ],
        }
        for n in range(TASKS)
    ]
    return _lines(path / "traces.jsonl", rows)


def _freeze(project: Project, path: Path, columns: str = "") -> Any:
    file = look_at(path, parse_columns(columns))
    quickstart.import_file(project, file, keep_good=False)
    return quickstart.freeze(project, "own")


@pytest.mark.parametrize(
    ("made", "reader", "kind", "count"),
    [
        (_pairs, "trl", "pairwise", TASKS),
        (_conversations, "trl", "pairwise", TASKS),
        (_ratings, "helpsteer", "rubric", 5 * TASKS),
        (_traces, "", "outcome", TASKS),
    ],
)
def test_a_file_becomes_records_that_train(
    project: Project, tmp_path: Path, made: Callable[[Path], Path], reader: str, kind: str, count: int
) -> None:
    file = look_at(made(tmp_path), {})
    assert (file.reader, file.records) == (reader, TASKS)
    dataset = _freeze(project, file.path)
    assert {name: number for name, number in dataset.records.items() if number} == {kind: count}
    quickstart.require_enough(dataset)


def test_other_columns_are_named(project: Project, tmp_path: Path) -> None:
    rows = [[f"good {n}", _question(n), f"bad {n}", "x"] for n in range(TASKS)]
    path = _csv(tmp_path / "own.csv", ["better", "question", "worse", "prompt"], rows)
    with pytest.raises(DomainError, match=r"its columns are: a b, c d\. .*--columns"):
        look_at(_csv(tmp_path / "odd.csv", ["a b", "c d"], [["1", "2"]] * TASKS), {})
    dataset = _freeze(project, path, "prompt=question, chosen=better, rejected=worse")
    assert dataset.usable_pairs == TASKS
    assert (
        sum(dataset.tasks.values()) == TASKS
    )  # a task each: the questions, not the column `prompt` that the file has


def test_the_columns_of_an_arena_become_its_winner(tmp_path: Path) -> None:
    columns = ["prompt", "response_a", "response_b", "winner_model_a", "winner_model_b", "winner_tie"]
    ends = [(1, 0, 0), (0, 1, 0), (0, 0, 1)]
    rows = [[_question(n), f"good {n}", f"bad {n}", *ends[n % 3]] for n in range(TASKS)]
    with look_at(_csv(tmp_path / "arena.csv", columns, rows), {}).opened() as source:
        assert not isinstance(source, Path)
        read = [json.loads(line) for line in source]
    assert [row["winner"] for row in read] == ["a", "b", "tie"] * (TASKS // 3)
    assert set(read[0]) == {"prompt", "response_a", "response_b", "winner"}


@pytest.mark.parametrize("text", ["prompt", "prompt=", "=question", "prompt:question"])
def test_a_mapping_that_says_nothing_is_refused(text: str) -> None:
    with pytest.raises(DomainError, match="NAME=COLUMN"):
        parse_columns(text)


def test_few_rows_are_refused_before_anything_starts(tmp_path: Path) -> None:
    path = _csv(tmp_path / "few.csv", ["prompt", "chosen", "rejected"], [["q", "good", "bad"]] * 6)
    with pytest.raises(DomainError, match=r"6 rows of feedback; a reward needs at least 10"):
        look_at(path, {})


def test_a_missing_or_broken_file_is_named(tmp_path: Path) -> None:
    with pytest.raises(DomainError, match="does not exist"):
        look_at(tmp_path / "none.csv", {})
    broken = tmp_path / "broken.jsonl"
    broken.write_text('{"prompt": "a"')
    with pytest.raises(DomainError, match=r"broken\.jsonl, line 1"):
        look_at(broken, {})


def test_one_task_is_too_few(project: Project, tmp_path: Path) -> None:
    rows = [["one question", f"good {n}", f"bad {n}"] for n in range(TASKS)]
    dataset = _freeze(project, _csv(tmp_path / "one.csv", ["prompt", "chosen", "rejected"], rows))
    with pytest.raises(DomainError, match=r"1 task \(different prompts\); at least 5"):
        quickstart.require_enough(dataset)


def test_outcomes_that_are_all_the_same_are_refused(project: Project, tmp_path: Path) -> None:
    rows = [json.loads(line) | {"success": True} for line in _traces(tmp_path).read_text().splitlines()]
    dataset = _freeze(project, _lines(tmp_path / "same.jsonl", rows))
    with pytest.raises(DomainError, match=f"Each of the {TASKS} trajectories is a success"):
        quickstart.require_enough(dataset)


def test_traces_without_outcomes_are_refused(project: Project, tmp_path: Path) -> None:
    rows = [json.loads(line) for line in _traces(tmp_path).read_text().splitlines()]
    bare = [{name: value for name, value in row.items() if name != "success"} for row in rows]
    file = look_at(_lines(tmp_path / "bare.jsonl", bare), {})
    quickstart.import_file(project, file, keep_good=False)
    with pytest.raises(DomainError):
        quickstart.require_enough(quickstart.freeze(project, "own"))


def test_a_wrong_record_imports_nothing_unless_the_good_are_kept(project: Project, tmp_path: Path) -> None:
    path = _pairs(tmp_path)
    rows = [dict(zip(("prompt", "chosen", "rejected"), ("q", "a", n), strict=True)) for n in ("b", 3)]
    good = [{"prompt": _question(n), "chosen": "good", "rejected": f"bad {n}"} for n in range(TASKS)]
    file = look_at(_lines(path.with_suffix(".jsonl"), [*good, rows[1]]), {})
    with pytest.raises(DomainError, match=rf"line {TASKS + 1}.*Nothing was imported"):
        quickstart.import_file(project, file, keep_good=False)
    assert not Trajectory.objects.exists()
    imported = quickstart.import_file(project, file, keep_good=True)
    assert imported.created == TASKS and len(imported.rejected) == 1


def test_an_error_of_a_stage_says_which_and_what_to_do(tmp_path: Path) -> None:
    from django.core.management.base import CommandError

    path = _csv(tmp_path / "few.csv", ["prompt", "chosen", "rejected"], [["q", "good", "bad"]] * 6)
    with pytest.raises(CommandError, match=r"^1\. Look at the file: .*Nothing was imported\.$"):
        call_command(Command(), str(path))


def test_the_key_may_score_and_no_more(project: Project) -> None:
    secret = quickstart.make_key(project)
    key = ApiKey.objects.get()
    assert key.scopes == [Scope.REWARD] and secret.startswith("tsk_")


def test_every_trainer_has_lines_with_address_endpoint_and_key() -> None:
    found = trainer_snippets("parcels", "tsk_x")
    assert tuple(snippet.name for snippet in found) == TRAINERS
    for snippet in found:
        assert "parcels" in snippet.text and "http://" in snippet.text
        assert "tsk_x" in snippet.text or snippet.name == "others"
        if "touchstone_client" in snippet.text.split("pip install")[-1].partition("\n")[2]:
            assert snippet.text.startswith(f"# {client_install()}\n")


@pytest.mark.parametrize(
    ("name", "slug"), [("My pairs (2).csv", "My-pairs-2"), ("runs.jsonl.gz", "runs"), ("....csv", "first")]
)
def test_names_come_from_the_file(name: str, slug: str) -> None:
    assert _slug(Path(name)) == slug


def test_a_file_is_described_in_words(tmp_path: Path) -> None:
    file = look_at(_pairs(tmp_path), {})
    assert isinstance(file, FeedbackFile) and file.what.startswith(f"{TASKS} records of preferences")
