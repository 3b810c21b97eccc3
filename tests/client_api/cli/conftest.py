"""`touchstone` against a running server, signed in by the environment."""

import json
from pathlib import Path
from typing import Any

import pytest

from apps.accounts.models import Project
from tests.client.cli.conftest import settings_folder, touchstone
from tests.client_api.conftest import CHATS

__all__ = ["settings_folder", "touchstone"]


@pytest.fixture
def signed_in(
    live_server: Any, project: Project, key: str, settings_folder: Path, monkeypatch: pytest.MonkeyPatch
) -> str:
    """The key."""
    monkeypatch.setenv("TOUCHSTONE_URL", live_server.url)
    monkeypatch.setenv("TOUCHSTONE_PROJECT", project.slug)
    monkeypatch.setenv("TOUCHSTONE_API_KEY", key)
    return key


@pytest.fixture
def chats(tmp_path: Path) -> Path:
    """Eight trajectories as JSON lines."""
    file = tmp_path / "chats.jsonl"
    file.write_text("".join(json.dumps(chat) + "\n" for chat in CHATS))
    return file
