"""Published files of data rows: what is read of them, counted by their own fields."""

import io
import json
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pytest

from apps.annotation.feedback.incoming import Incoming
from apps.annotation.feedback.readers import READERS
from apps.trajectories import formats
from apps.trajectories.import_reader import ImportReader, read_import_records
from apps.trajectories.serialization import with_task_id
from tests.trajectories.real_files import comes_back
from workers.errors import InvalidRecord
from workers.schema import Trajectory


def imported(raw: bytes) -> tuple[str, list[Trajectory]]:
    """The format, and the trajectories as they are stored; nothing may be dropped or lost on the way to ATIF."""
    reader = ImportReader(None)
    records = [part for record in read_import_records(io.BytesIO(raw)) for part in reader.parts(record)]
    found = []
    for part in (*records, *reader.rest()):
        reader.prepare(part)
        trajectory = reader.read(part)
        assert comes_back(trajectory)
        found.append(with_task_id(trajectory))
    assert reader.dropped.as_json() == []
    assert reader.format is not None
    return reader.format.name, found


def feedback(name: str, raw: bytes) -> list[Incoming]:
    found = [each for _, each in READERS[name](io.BytesIO(raw))]
    assert [each for each in found if isinstance(each, InvalidRecord)] == []
    return [each for each in found if isinstance(each, Incoming)]


def hashes(trajectories: Iterable[Any]) -> set[str]:
    return {each.content_hash for each in trajectories}


def same_trajectories(name: str, raw: bytes) -> list[Incoming]:
    """The feedback of rows, which is on the trajectories that are imported from them."""
    records = feedback(name, raw)
    assert hashes(place for each in records for place in each.places) == hashes(imported(raw)[1])
    return records


def spoken(trajectory: Trajectory) -> list[tuple[str, str]]:
    return [(step.source, step.text) for step in trajectory.steps]


def wild(shared_data: Path, pattern: str) -> bytes:
    (path,) = sorted((shared_data / "wild").glob(pattern))
    return path.read_bytes()


def test_alpaca_eval(shared_data: Path) -> None:
    raw = wild(shared_data, "fb-alpacaeval*")
    rows = json.loads(raw)
    name, found = imported(raw)
    assert name == "alpaca-eval" and len(found) == 80
    for row, first, second in zip(rows, found[::2], found[1::2], strict=True):
        assert spoken(first) == [("user", row["instruction"]), ("agent", row["output_1"])]
        assert spoken(second) == [("user", row["instruction"]), ("agent", row["output_2"])]
        assert (first.agent, second.agent) == (row["generator_1"], row["generator_2"])
        assert first.task == second.task and first.reward is first.success is None
    given = same_trajectories("alpaca-eval", raw)
    assert [each.value.choice for each in given] == ["a" if row["preference"] < 1.5 else "b" for row in rows]
    assert {each.annotator for each in given} == {"weighted_alpaca_eval_gpt4_turbo"}


def test_preferences_of_llama_factory(shared_data: Path) -> None:
    raw = wild(shared_data, "fb-dpo*")
    name, found = imported(raw)
    rows = json.loads(raw)
    assert name == "preference" and len(found) == 50
    speakers = {"human": "user", "gpt": "agent", "system": "system"}
    for row, chosen, rejected in zip(rows, found[::2], found[1::2], strict=True):
        asked = [(speakers[turn["from"]], turn["value"]) for turn in row["conversations"]]
        assert spoken(chosen) == [*asked, ("agent", row["chosen"]["value"])]
        assert spoken(rejected) == [*asked, ("agent", row["rejected"]["value"])]
        assert chosen.task == rejected.task
    assert {each.value.choice for each in same_trajectories("trl", raw)} == {"a"}


def test_labels_of_kto_are_feedback(shared_data: Path) -> None:
    raw = wild(shared_data, "fb-kto*")
    _, found = imported(raw)
    assert all(trajectory.success is trajectory.reward is None for trajectory in found)
    given = same_trajectories("trl-unpaired", raw)
    assert [each.value.accept for each in given] == [row["label"] for row in json.loads(raw)]


def test_calls_and_results_of_sharegpt(shared_data: Path) -> None:
    raw = wild(shared_data, "sharegpt-tools*")
    name, found = imported(raw)
    rows = json.loads(raw)
    assert name == "sharegpt" and len(found) == len(rows) == 25
    for row, trajectory in zip(rows, found, strict=True):
        turns = row["conversations"]
        calls = [json.loads(turn["value"]) for turn in turns if turn["from"] == "function_call"]
        results = [turn["value"] for turn in turns if turn["from"] == "observation"]
        steps = [step for step in trajectory.steps if step.tool_calls]
        made = [call for step in steps for call in step.tool_calls]
        assert [(call.name, call.arguments) for call in made] == [(c["name"], c["arguments"]) for c in calls]
        assert [result.content[0].text for step in steps for result in step.observation] == results
        assert sum(step.source == "user" for step in trajectory.steps) == sum(
            turn["from"] == "human" for turn in turns
        )
        assert trajectory.metadata["tools"] == json.loads(row["tools"])


def test_conversations_of_sharegpt(shared_data: Path) -> None:
    raw = wild(shared_data, "sharegpt__*")
    _, found = imported(raw)
    rows = json.loads(raw)
    assert [trajectory.id for trajectory in found] == [row["id"] for row in rows]
    assert [[text for _, text in spoken(trajectory)] for trajectory in found] == [
        [turn["value"] for turn in row["conversations"]] for row in rows
    ]


def test_logged_samples_of_trainers_share_the_task_of_their_prompt(shared_data: Path) -> None:
    tables = {}
    for pattern in ("trl-completions*", "verifiers*", "verl-dump*"):
        name, found = imported(wild(shared_data, pattern))
        tables[name] = [(spoken(each), each.reward, each.success) for each in found]
        assert {each.task.instruction for each in found} == {"What is 2+2?"}
    asked = ("user", "What is 2+2?")
    right, wrong = ([asked, ("agent", text)] for text in ("4", "5"))
    assert tables == {
        "prompt-completion": [(right, 1.0, None), (wrong, 0.0, None)],
        "verifiers": [(right, 1.0, None)],
        "verl": [(right, 1.0, True), (wrong, 0.0, False)],
    }
    ids = {
        each.task.id
        for pattern in ("trl-completions*", "verifiers*", "verl-dump*")
        for each in imported(wild(shared_data, pattern))[1]
    }
    assert len(ids) == 1


def test_rows_of_trl(shared_data: Path) -> None:
    assert imported(wild(shared_data, "trl-pref*"))[0] == "preference"
    _, (trajectory,) = imported(wild(shared_data, "trl-conv*"))
    assert spoken(trajectory) == [("user", "Hi"), ("agent", "Hello")]
    assert [each.value.choice for each in same_trajectories("trl", wild(shared_data, "trl-pref*"))] == ["a"]


def test_dialogues_of_hh(shared_data: Path) -> None:
    raw = (shared_data / "hh_rlhf" / "harmless-base-first-1800.jsonl").read_bytes()
    rows = [json.loads(line) for line in raw.splitlines()]
    name, found = imported(raw)
    assert name == "hh" and len(found) == 2 * len(rows)
    sides = [row[side] for row in rows for side in ("chosen", "rejected")]
    assert [len(each.steps) for each in found] == [
        side.count("\n\nHuman:") + side.count("\n\nAssistant:") for side in sides
    ]
    assert all(a.task.id == b.task.id for a, b in zip(found[::2], found[1::2], strict=True))


def test_pandalm(shared_data: Path) -> None:
    raw = (shared_data / "pandalm" / "testset-v1.json").read_bytes()
    rows = json.loads(raw)
    _, found = imported(raw)
    assert len(found) == 2 * len(rows)
    assert [each.steps[-1].text for each in found[::2]] == [str(row["response1"]) for row in rows]


def test_pairs_of_ours_are_read_as_trajectories_and_as_feedback(shared_data: Path) -> None:
    raw = (shared_data / "cases" / "import" / "pairs_reasoning_only.jsonl").read_bytes()
    name, found = imported(raw)
    assert (name, [each.task.id for each in found]) == ("feedback", ["r1", "r1", "r2", "r2"])
    assert [each.steps[1].reasoning for each in found[:2]] == ["careful thought", "nonsense"]
    assert {each.value.choice for each in same_trajectories("pairs", raw)} == {"a"}


@pytest.mark.parametrize("folder", ["wild", "cases/import"])
def test_no_two_formats_of_rows_claim_a_document(shared_data: Path, folder: str) -> None:
    for path in sorted((shared_data / folder).iterdir()):
        if not path.is_file():
            continue
        with path.open("rb") as stream:
            for record in read_import_records(stream):
                claims = [
                    name
                    for name, format in formats.FORMATS.items()
                    if ".general." not in format.read.__module__ and format.sniff(record.document)
                ]  # the general ones come last, for what no other reads
                rows = [name for name in claims if ".data_rows." in formats.FORMATS[name].read.__module__]
                assert not rows or len(claims) == 1, (path.name, claims)
