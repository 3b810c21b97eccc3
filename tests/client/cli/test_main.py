"""Exit statuses and errors of `touchstone`, against a server that answers from a script or not at all."""

import json
import subprocess
import sys
from importlib.metadata import entry_points
from pathlib import Path

import pytest
from touchstone_client.cli import main as main_module
from touchstone_client.cli.own import COMMANDS

from tests.client.cli.conftest import Touchstone
from tests.client.conftest import Reply, Script

ROOT = Path(__file__).parents[3]


@pytest.fixture
def signed_in(server: Script, monkeypatch: pytest.MonkeyPatch, settings_folder: Path) -> Script:
    monkeypatch.setenv("TOUCHSTONE_URL", server.url)
    monkeypatch.setenv("TOUCHSTONE_PROJECT", "desk")
    monkeypatch.setenv("TOUCHSTONE_API_KEY", "tsk_secret")
    return server


def test_without_settings_it_says_how_to_set_them(touchstone: Touchstone) -> None:
    found = touchstone("runs")
    assert (found.status, found.out) == (2, "")
    assert found.err == "Error: No server is set up: run `touchstone login`, or set TOUCHSTONE_URL.\n"


@pytest.mark.parametrize("name", sorted(COMMANDS))
def test_every_command_has_help_and_json(name: str, touchstone: Touchstone) -> None:
    found = touchstone(name, "--help")
    assert found.status == 0 and "--json" in found.out and "--profile" in found.out
    assert touchstone(name, "--no-such-option").status == 2


def test_a_command_that_is_not_there(touchstone: Touchstone) -> None:
    found = touchstone("no-such-command")
    assert (found.status, found.out) == (2, "") and "There is no command 'no-such-command'" in found.err
    assert touchstone().status == 2 and touchstone("help").status == touchstone("--version").status == 0
    assert "--reason" in touchstone("help", "switch-off").out


def test_a_server_that_does_not_respond(touchstone: Touchstone, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TOUCHSTONE_URL", "http://127.0.0.1:9")
    monkeypatch.setenv("TOUCHSTONE_PROJECT", "desk")
    monkeypatch.setenv("TOUCHSTONE_API_KEY", "tsk_secret")
    found = touchstone("runs", "--json")
    assert found.status == found.json["error"]["status"] == 3
    assert found.err.startswith("Error: http://127.0.0.1:9 does not respond") and found.err.count("\n") == 1
    assert "tsk_secret" not in found.out + found.err


@pytest.mark.parametrize(
    ("reply", "status", "words"),
    [
        (Reply(400, {"detail": "limit is 0.", "pointer": "/limit"}), 1, "Error: limit is 0. (at /limit)"),
        (Reply(404, b"<html>nothing</html>"), 1, "status 404, not as a Touchstone server does"),
        (Reply(200, b"<html>hello</html>"), 1, "The reply is not JSON"),
        (Reply(500, {"detail": "Something went wrong."}), 3, "Something went wrong."),
        (Reply(503, {"detail": "Too busy."}), 3, "Too busy."),
        (Reply(503, {"detail": "It is off: hacked.", "switched_off": True}), 1, "It is off: hacked."),
        (Reply(hang_up=True), 3, "does not respond"),
        (Reply(302, {}, {"Location": "/api/v1/projects/desk/runs"}), 1, "The reply does not have the shape"),
    ],
)
def test_what_the_server_answers_becomes_a_sentence(
    signed_in: Script, touchstone: Touchstone, reply: Reply, status: int, words: str
) -> None:
    signed_in.replies = [reply]
    found = touchstone("runs")
    assert (found.status, found.out) == (status, "")
    assert words in found.err and found.err.count("\n") == 1


def test_redirects_without_an_end(signed_in: Script, touchstone: Touchstone) -> None:
    signed_in.replies = [Reply(302, {}, {"Location": "/again"})] * 50
    found = touchstone("runs")
    assert found.status == 1 and "cannot be followed" in found.err


def test_ctrl_c_is_no_error_with_a_traceback(
    signed_in: Script, touchstone: Touchstone, monkeypatch: pytest.MonkeyPatch
) -> None:
    def interrupted(*arguments: object) -> int:
        raise KeyboardInterrupt

    monkeypatch.setattr(main_module, "run_command", interrupted)
    found = touchstone("runs")
    assert (found.status, found.out, found.err) == (130, "", "\nInterrupted.\n")


def test_names_of_others_do_not_act_on_the_terminal(signed_in: Script, touchstone: Touchstone) -> None:
    name = "a\x1b[2Jb\u202ec"
    page = {"items": [{"endpoint": name, "active": 1}], "next": None}
    signed_in.replies = [Reply(body=page), Reply(body=page)]
    found = touchstone("endpoints")
    assert found.status == 0 and "a\N{REPLACEMENT CHARACTER}[2Jb" in found.out
    assert "\x1b" not in found.out and "\u202e" not in found.out
    assert touchstone("endpoints", "--json").json["items"][0]["endpoint"] == name


def test_a_reader_that_has_read_enough(tmp_path: Path) -> None:
    """As `touchstone ... | head -1` does, in a process of its own."""
    code = (
        "import sys; from touchstone_client.cli import main as m\n"
        "def run(*a):\n    for _ in range(100000): print('x' * 100)\n"
        "m.run_command = run; sys.exit(m.main(['runs']))"
    )
    with subprocess.Popen(
        [sys.executable, "-c", code], cwd=tmp_path, stdout=subprocess.PIPE, stderr=subprocess.PIPE
    ) as child:
        assert child.stdout is not None and child.stderr is not None
        child.stdout.readline()
        child.stdout.close()
        assert (child.wait(30), child.stderr.read()) == (141, b"")


def test_the_module_runs_as_the_script_does(tmp_path: Path, settings_folder: Path) -> None:
    command = [sys.executable, "-m", "touchstone_client", "runs", "--json"]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert done.returncode == 2 and json.loads(done.stdout)["error"]["status"] == 2


def test_the_installed_script_runs(tmp_path: Path, settings_folder: Path) -> None:
    script = Path(sys.executable).with_name("touchstone")
    if not script.exists() or not entry_points(group="console_scripts", name="touchstone"):
        pytest.skip("The client was installed before it had a script; `make install` installs it again.")
    done = subprocess.run([script, "--help"], cwd=tmp_path, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")
    assert (
        "  login " in done.stdout and "  create_project " in done.stdout and "  manage deploy " in done.stdout
    )
