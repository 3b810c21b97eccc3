import json
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from django.core.management import call_command

from apps.accounts.models import Project
from apps.datasets.exports import EXPORTS
from apps.datasets.exports.conversations import split_prompt
from tests.datasets.feedback import freeze, import_pairs, pair

TOOL_CALL = {"id": "1", "type": "function", "function": {"name": "find", "arguments": '{"order": 7}'}}


def with_tools(task: str) -> dict[str, Any]:
    begin: list[dict[str, Any]] = [{"role": "user", "content": "Where is it?"}]
    looked = [
        {"role": "assistant", "content": None, "tool_calls": [TOOL_CALL]},
        {"role": "tool", "tool_call_id": "1", "content": "lost"},
    ]
    return {
        "task": {"id": task},
        "a": {"messages": begin + looked + [{"role": "assistant", "content": "It is lost."}]},
        "b": {"messages": begin + looked + [{"role": "assistant", "content": "It comes."}]},
        "choice": "b",
        "strength": 3,
        "annotator": "ann",
    }


def rows(project: Project, format: str = "trl", split: str | None = None) -> list[dict[str, Any]]:
    """Without the records, which are for imports."""
    found = [json.loads(line) for line in EXPORTS[format](freeze(project), split, Counter())]
    return [{key: value for key, value in row.items() if key != "record"} for row in found]


def test_trl_has_prompt_chosen_rejected_and_margin(project: Project) -> None:
    import_pairs(project, [pair("x", choice="b", strength=2)])
    assert rows(project) == [
        {
            "prompt": [{"role": "user", "content": "Please help me with x."}],
            "chosen": [{"role": "assistant", "content": "No. x is your problem."}],
            "rejected": [{"role": "assistant", "content": "Gladly: x is done, and I checked it."}],
            "margin": pytest.approx(2 / 3),
            "origin": "imported",
        }
    ]


def test_trl_leaves_out_what_has_no_chosen_side(project: Project) -> None:
    import_pairs(project, [pair("x", choice="tie"), pair("y", choice="both_bad"), pair("z")])
    assert len(rows(project)) == 1


def test_trl_prompt_is_all_that_is_shared(project: Project) -> None:
    import_pairs(project, [with_tools("x")])
    (row,) = rows(project)
    assert [message["role"] for message in row["prompt"]] == ["user", "assistant", "tool"]
    assert row["prompt"][1]["tool_calls"][0]["function"] == {"name": "find", "arguments": {"order": 7}}
    assert [message["content"] for message in (row["chosen"] + row["rejected"])] == [
        "It comes.",
        "It is lost.",
    ]


def message(role: str, content: str) -> dict[str, str]:
    return {"role": role, "content": content}


def test_both_sides_begin_with_the_agent() -> None:
    # The worlds part at the user's second turn, which is no part of what the agent said.
    begin = [message("user", "hi"), message("assistant", "yes?")]
    first_messages, other = (
        [*begin, message("user", "1"), message("assistant", "x")],
        [*begin, message("user", "2")],
    )
    prompt, first, second = split_prompt(first_messages, other)
    assert (prompt, first, second) == (begin[:1], first_messages[1:], other[1:])


def test_a_side_that_is_the_beginning_of_the_other_still_says_something() -> None:
    begin = [message("user", "hi"), message("assistant", "yes?")]
    prompt, first, second = split_prompt([*begin, message("user", "1"), message("assistant", "x")], begin)
    assert (prompt, second) == (begin[:1], begin[1:])
    assert len(first) == 3


def test_jsonl_is_what_was_frozen(project: Project) -> None:
    import_pairs(project, [pair("x"), pair("x", annotator="ben")])
    kinds = [row["kind"] for row in rows(project, "jsonl", "train")]
    assert kinds == ["trajectory", "trajectory", "pairwise", "pairwise"]


@pytest.mark.slow
def test_trl_and_datasets_read_it(project: Project, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Tool calls come late in the feedback, so that the types `datasets` guesses from the beginning must hold."""
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    datasets = pytest.importorskip("datasets")
    from trl.data_utils import is_conversational, maybe_apply_chat_template

    import_pairs(project, [pair(f"x{n}", strength=1 + n % 3) for n in range(20)] + [with_tools("late")])
    freeze(project)
    call_command("export_dataset", "desk/first", "--format", "trl", "--out", str(tmp_path / "train.jsonl"))
    loaded = datasets.load_dataset(
        "json",
        data_files=str(tmp_path / "train.jsonl"),
        split="train",
        cache_dir=str(tmp_path / "cache"),
        chunksize=2000,
    )
    assert set(loaded.column_names) == {"prompt", "chosen", "rejected", "margin", "origin", "record"}
    assert len(loaded) == 21
    templated = [maybe_apply_chat_template(row, _Chat()) for row in loaded]  # type: ignore[arg-type]
    assert all(is_conversational(row) for row in loaded)
    late = next(row for row in templated if "Where is it?" in row["prompt"])
    assert late["chosen"] == "It comes."


class _Chat:
    """A tokenizer as far as TRL's formatting asks one."""

    def apply_chat_template(self, messages: Any, tools: Any = None, tokenize: bool = False, **kw: Any) -> str:
        text = "".join(f"<{message['role']}>{message['content']}" for message in messages)
        return text + ("<assistant>" if kw.get("add_generation_prompt") else "")
