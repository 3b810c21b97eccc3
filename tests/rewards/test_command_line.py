"""`touchstone score` against a running reward service."""

import json
from pathlib import Path

import pytest

from tests.client.cli.conftest import Touchstone, settings_folder, touchstone

__all__ = ["settings_folder", "touchstone"]


def test_the_client_scores_what_the_servers_command_scores(  # type: ignore[no-untyped-def]
    service, endpoint: str, key: str, touchstone: Touchstone, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("TOUCHSTONE_URL", service.url)
    monkeypatch.setenv("TOUCHSTONE_PROJECT", "desk")
    monkeypatch.setenv("TOUCHSTONE_API_KEY", key)
    file = tmp_path / "items.jsonl"
    items = [{"prompt": "Hi", "response": "word " * number} for number in range(1, 4)]
    file.write_text("".join(json.dumps(item) + "\n" for item in items))
    found = touchstone("score", endpoint, file, "--batch", 2)
    assert found.status == 0, found.err
    results = [json.loads(line) for line in found.out.splitlines()]
    assert len(results) == 3 and all(isinstance(result["reward"], float) for result in results)
    assert results[0]["steps"][0]["agent_step"] == 0 and "revision 1 of desk-reward" in found.err
    file.write_text('{"prompt": "Hi"}\n')
    refused = touchstone("score", endpoint, file)
    assert refused.status == 1 and refused.err.startswith("Error: Line 1: ")
    assert touchstone("score", "no-such-endpoint", file).status == 1
