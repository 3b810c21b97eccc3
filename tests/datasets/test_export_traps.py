"""What each export does with rows that trainers get wrong: nothing is missing without being counted."""

import json
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from apps.datasets.exports.accepted import Acceptance
from apps.datasets.exports.columns import LeftOut
from apps.datasets.exports.formats import EXPORTS, FOLDER_EXPORTS, export_lines, write_folder
from apps.datasets.models import DatasetVersion
from tests.datasets.trap_feedback import UNICODE


def exported(
    version: DatasetVersion, format: str, **rule: Any
) -> tuple[list[dict[str, Any]], dict[str, int]]:
    left_out: LeftOut = Counter()
    lines = export_lines(version, format, None, left_out, Acceptance(**rule))
    return [json.loads(line) for line in lines], {why: n for why, n in left_out.items() if n}


def strings(value: Any) -> set[str]:
    """All texts in a value."""
    if isinstance(value, dict):
        value = list(value.values())
    return set().union(*map(strings, value)) if isinstance(value, list) else {str(value)}


def all_text(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False)


@pytest.mark.parametrize("format", sorted(set(EXPORTS) - {"jsonl"}))
def test_no_row_has_empty_fields_or_equal_sides(traps: DatasetVersion, format: str) -> None:
    rows, left_out = exported(traps, format)
    assert left_out
    # No agent tries a task twice here; tests/datasets/test_failed_step_exports.py has reflections between attempts.
    assert bool(rows) == (format != "trl-reflections")
    for row in rows:
        for suffix in ("", "_messages"):
            assert row.get(f"chosen{suffix}", 1) != row.get(f"rejected{suffix}", 2)
        for message in _messages(row):
            assert all(value not in (None, [], {}) for value in message.values()), message
            for call in message.get("tool_calls", ()):
                assert isinstance(call["function"]["arguments"], dict)


def _messages(value: Any) -> list[dict[str, Any]]:
    if isinstance(value, dict):
        found = [value] if "role" in value else []
        return found + [message for each in value.values() for message in _messages(each)]
    return [message for each in value for message in _messages(each)] if isinstance(value, list) else []


def test_preferences_count_what_they_leave_out(traps: DatasetVersion) -> None:
    for format in ("trl", "openrlhf", "openrlhf-dpo", "axolotl-dpo"):
        rows, left_out = exported(traps, format)
        assert left_out["ties"] == 1 and left_out["pairs whose sides are written alike"] == 1, format
        assert left_out["records of numeric trajectories, which have no text"] == 1, format
        kinds = sum(
            n for why, n in left_out.items() if why.split()[0] in ("rating", "step", "rubric", "outcome")
        )
        assert (
            kinds
            == traps.records["rating"]
            + traps.records["step"]
            + traps.records["rubric"]
            + (traps.records["outcome"])
        ), format
        assert UNICODE in strings(rows), format
        unread = sum(
            n for why, n in left_out.items() if why.startswith("pairs in which") or "one message" in why
        )
        assert len(rows) + unread == 6, format


def test_speakers_are_in_the_rows(traps: DatasetVersion) -> None:
    rows, _ = exported(traps, "trl")
    (talk,) = (row for row in rows if "Who begins?" in all_text(row))
    assert [message.get("name") for message in talk["prompt"]] == ["Ann", "Bo", "Cy", "Dee"]
    assert talk["chosen"] == [{"role": "assistant", "name": "Bo", "content": "Right."}]
    texts, _ = exported(traps, "rewardbench")
    (talk,) = (row for row in texts if "Who begins?" in row["prompt"])
    assert talk["prompt"].startswith("user (Ann): Who begins?\n\nassistant (Bo): I do.")


def test_accepted_by_ratings_else_by_the_outcome(traps: DatasetVersion) -> None:
    rows, left_out = exported(traps, "axolotl-sft")
    assert {row["task"]: row["origin"] for row in rows} == {
        **dict.fromkeys(("plain", "calls", "picture", "talk", "unicode"), "imported"),
        "won": "outcome",
    }
    assert left_out["trajectories that were not accepted"] == 2  # rude, lost
    assert left_out["numeric trajectories, which have no text"] == 1
    assert left_out["trajectories in which no agent step is trained on"] == 1  # the agent says nothing
    assert left_out["agent steps that were marked bad"] == 2
    assert left_out["images named in the text"] == 1
    # Sides of pairs, ranked ones, the middle of a scale; not the equal one twice.
    trajectories = 6 + 2 + 1 + 1 + left_out["trajectories without a rating, a mark or an outcome"]
    assert trajectories == len(
        {line["key"] for line in exported(traps, "jsonl")[0] if line["kind"] == "trajectory"}
    )


def test_bad_steps_are_masked_or_left_out(traps: DatasetVersion) -> None:
    (plain,) = (row for row in exported(traps, "axolotl-sft")[0] if row["task"] == "plain")
    assert [(message["role"], message["train"]) for message in plain["messages"]] == [
        ("user", False),
        ("assistant", True),
        ("user", False),
        ("assistant", False),
        ("user", False),
        ("assistant", True),
    ]
    runs = [row for row in exported(traps, "trl-sft")[0] if row["task"] == "plain"]
    assert [(len(row["prompt"]), [each["content"] for each in row["completion"]]) for row in runs] == [
        (1, ["one"]),
        (5, ["three"]),
    ]
    rows, left_out = exported(traps, "openrlhf-sft")
    (plain,) = (row for row in rows if row["task"] == "plain")
    assert [message["content"] for message in plain["messages"]] == ["Say one.", "one"]
    # Of `plain` the third step, of `calls` the fourth.
    assert left_out["agent steps after one that was marked bad, which the format cannot mask"] == 2


def test_another_rule(traps: DatasetVersion) -> None:
    assert {row["task"] for row in exported(traps, "trl-sft", by="outcome")[0]} == {"won"}
    rows, left_out = exported(traps, "trl-sft", by="score", criterion="polite", threshold=0.75)
    assert {row["task"] for row in rows} == {"plain"}
    assert left_out["trajectories without a score by the criterion"] > 5
    assert exported(traps, "trl-sft", by="score", threshold=0.8)[0] == []
    assert "won" not in {row["task"] for row in exported(traps, "trl-sft", by="rating")[0]}


def test_prompts_once_each_with_the_reference(traps: DatasetVersion) -> None:
    rows, left_out = exported(traps, "trl-prompts")
    assert len({(row["task"], all_text(row["prompt"])) for row in rows}) == len(rows)
    assert "numbers" not in {row["task"] for row in rows} and left_out["trajectories without a prompt"] >= 1
    by_task = {row["task"]: row for row in exported(traps, "openrlhf-prompts")[0]}
    assert by_task["calls"]["tools"][0]["function"]["name"] == "weather"
    assert {row["datasource"] for row in by_task.values()} == {"desk/first@1"}


@pytest.mark.parametrize("format", sorted(FOLDER_EXPORTS))
def test_folders_are_written_again_alike(traps: DatasetVersion, format: str, tmp_path: Path) -> None:
    seen = []
    for name in ("one", "two"):
        folder = tmp_path / name
        folder.mkdir()
        left_out: LeftOut = Counter()
        rows = sum(1 for _ in write_folder(traps, format, None, left_out, folder))
        files = {path.relative_to(folder): path.read_bytes() for path in folder.rglob("*") if path.is_file()}
        seen.append((rows, files, left_out))
    assert seen[0] == seen[1] and seen[0][0] > 0
    assert not [path for path in seen[0][1] if path.name.startswith(".")]
