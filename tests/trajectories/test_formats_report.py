"""The report of what public files hold, on files whose contents are known."""

import json

from benchmarks.formats import COUNTS, measure, read_file, table

CHAT = {
    "messages": [
        {"role": "user", "content": "Weather?"},
        {
            "role": "assistant",
            "reasoning_content": "Look it up.",
            "tool_calls": [{"id": "1", "type": "function", "function": {"name": "get", "arguments": "{}"}}],
        },
        {"role": "tool", "tool_call_id": "1", "content": "Sun"},
        {"role": "assistant", "content": "Sunny."},
    ],
    "success": True,
    "odd": "a value that no format knows",
}


def test_it_counts_what_a_file_holds(tmp_path):
    path = tmp_path / "chat.jsonl"
    path.write_text(json.dumps(CHAT) + "\n" + json.dumps(CHAT | {"messages": []}) + "\n")
    found = read_file(path)
    assert [found.counts[name] for name in COUNTS] == [1, 3, 1, 1, 1, 1, 0, 0]
    assert found.has == {"outcome"} and found.equal == 1
    assert found.kept >= 1 and found.dropped == 0
    assert len(found.refusals) == 1 and "no agent step" in found.refusals[0]


def test_its_tables_name_files_that_are_read_and_those_that_are_not(tmp_path):
    (tmp_path / "chat.json").write_text(json.dumps(CHAT))
    (tmp_path / "other.json").write_text('{"x": "a | b"}')
    text = "\n".join(table(measure([tmp_path])))
    assert "| chat.json | `openai` | 1 | 3 | 1 | 1 | 1 | 1 | 0 | 0 | outcome |" in text
    assert "| other.json | 1 | The record is an object with the keys 'x'" in text
