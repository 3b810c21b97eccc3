"""login, whoami, logout against a running server."""

import getpass
import os
import pty
import stat
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from apps.accounts.models import ApiKey, Project, Scope
from apps.accounts.services import create_api_key, create_project, revoke_api_key
from tests.client.cli.conftest import Touchstone

pytestmark = pytest.mark.django_db(transaction=True)


def test_login_checks_the_key_and_stores_it(
    live_server: Any, project: Project, touchstone: Touchstone, settings_folder: Path
) -> None:
    secret = create_api_key(project=project, scopes=[Scope.INGEST, Scope.TRAIN])[1]
    found = touchstone("login", live_server.url, "--key-stdin", stdin=f"{secret}\n".encode())
    assert found.status == 0 and f"Signed in to {live_server.url}, project desk." in found.out
    assert "ingest, train" in found.out and secret not in found.out + found.err
    file = settings_folder / "credentials.json"
    assert stat.S_IMODE(file.stat().st_mode) == 0o600 and secret in file.read_text()
    shown = touchstone("whoami", "--json").json
    assert (shown["url"], shown["project"], shown["profile"]) == (live_server.url, "desk", "default")
    assert set(shown["scopes"]) == {"ingest", "train"}
    assert "desk" in touchstone("whoami").out and touchstone("runs").status == 0
    assert touchstone("logout").status == 0 and secret not in file.read_text()
    assert touchstone("whoami").status == 2


@pytest.mark.parametrize("given", [b"tsk_00000000_wrong\n", b"nonsense"])
def test_a_key_that_is_not_taken_is_not_stored(
    live_server: Any, project: Project, touchstone: Touchstone, settings_folder: Path, given: bytes
) -> None:
    found = touchstone("login", live_server.url, "--key-stdin", "--json", stdin=given)
    assert found.status == 1 and "This key is not valid" in found.json["error"]["message"]
    assert not settings_folder.exists() and given.decode().strip() not in found.out + found.err


def test_profiles_and_other_projects(
    live_server: Any, project: Project, key: str, touchstone: Touchstone
) -> None:
    other = create_api_key(project=create_project(slug="other"), scopes=[Scope.TRAIN])[1]
    login = ("login", live_server.url, "--key-stdin")
    refused = touchstone(*login, "--project", "desk", stdin=other.encode())
    assert refused.status == 1 and "The key is one of the project other, not of desk." in refused.err
    assert touchstone(*login, stdin=key.encode()).status == 0
    assert touchstone(*login, "--profile", "second", stdin=other.encode()).status == 0
    assert touchstone("whoami", "--json").json["project"] == "desk"
    assert touchstone("whoami", "--json", "--profile", "second").json["project"] == "other"
    outside = touchstone("runs", "--project", "other")
    assert outside.status == 1 and outside.err.count("\n") == 1
    revoke_api_key(key=ApiKey.objects.get(project=project), by=None)
    assert "not valid" in touchstone("whoami").err


def test_the_key_is_asked_for_on_a_terminal_and_not_shown(
    live_server: Any, key: str, settings_folder: Path, tmp_path: Path
) -> None:
    """In a process with a terminal of its own: what is typed does not appear on it."""
    main, other = pty.openpty()
    with subprocess.Popen(
        [sys.executable, "-m", "touchstone_client", "login", live_server.url],
        stdin=other,
        stdout=other,
        stderr=other,
        start_new_session=True,
        cwd=tmp_path,
    ) as child:
        os.close(other)
        shown = b""
        while b"API key" not in shown:
            shown += os.read(main, 1000)
        os.write(main, f"{key}\n".encode())
        while b"The profile" not in shown:
            shown += os.read(main, 1000)
        assert child.wait(20) == 0
    os.close(main)
    assert key.encode() not in shown and key in (settings_folder / "credentials.json").read_text()


def test_without_a_terminal_it_says_how_to_give_the_key(
    live_server: Any, touchstone: Touchstone, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(getpass, "getpass", lambda prompt: pytest.fail("it would wait"))
    found = touchstone("login", live_server.url)
    assert found.status == 2 and "use --key-stdin, or set TOUCHSTONE_API_KEY" in found.err
    assert touchstone("login").status == 2
