import io
import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from apps.core.commands import CommandFailed, Error, TouchstoneCommand
from apps.core.errors import DomainError
from workers.errors import RewardError

ROOT = Path(__file__).parents[2]


class Greet(TouchstoneCommand):
    needs_database = False

    def add_arguments(self, parser: Any) -> None:
        parser.add_argument("name")

    def run(self, *, name: str) -> dict[str, Any]:
        if name == "domain":
            raise DomainError("Nobody has that name; choose another.", pointer="/name")
        if name == "reward":
            raise RewardError("It has no steps.")
        if name == "half":
            raise CommandFailed("Half of it failed.", result={"greeted": 1})
        with self.progress(2, "greeting") as progress:
            progress.advance(2)
        self.say(f"Hello {name}")
        return {"greeted": name}


def _call(*arguments: str) -> tuple[str, str, str]:
    out, err = io.StringIO(), io.StringIO()
    command, failure = Greet(stdout=out, stderr=err), ""  # type: ignore[arg-type]
    parser = command.create_parser("manage.py", "greet")
    try:
        command.handle(**vars(parser.parse_args(list(arguments))))
    except Error as error:
        failure = str(error)
    return out.getvalue(), err.getvalue(), failure


def test_for_people() -> None:
    assert _call("Ann") == ("Hello Ann\n", "greeting: 2/2\n", "")


def test_for_scripts_one_object_and_nothing_else() -> None:
    out, err, _ = _call("Ann", "--json")
    assert json.loads(out) == {"greeted": "Ann"}
    assert err == "greeting: 2/2\nHello Ann\n"


@pytest.mark.parametrize(
    ("name", "sentence", "printed"),
    [
        (
            "domain",
            "Nobody has that name; choose another. (at /name)",
            {"error": {"message": "Nobody has that name; choose another.", "pointer": "/name"}},
        ),
        ("reward", "It has no steps.", {"error": {"message": "It has no steps.", "pointer": None}}),
        ("half", "Half of it failed.", {"greeted": 1}),
    ],
)
def test_errors_are_one_sentence(name: str, sentence: str, printed: dict[str, Any]) -> None:
    assert _call(name) == ("", "", sentence)
    out, _, failure = _call(name, "--json")
    assert (json.loads(out), failure) == (printed, sentence)


def test_without_a_database_a_command_says_what_to_do(tmp_path: Path) -> None:
    environment = {name: value for name, value in os.environ.items() if name != "DATABASE_URL"}
    done = subprocess.run(
        [sys.executable, "manage.py", "worker", "default", "--home", str(tmp_path / "new"), "--json"],
        cwd=ROOT,
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 1
    assert done.stderr.startswith("Error: There is no database in")
    assert "manage.py up" in json.loads(done.stdout)["error"]["message"]
    assert not (tmp_path / "new").exists()


def test_whoever_stops_reading_ends_it_without_a_word(own_home: Path) -> None:
    """As `manage.py export_feedback ... | head` does."""
    code = (
        "import os, django; django.setup()\n"
        "from django.core.management import execute_from_command_line\n"
        "from apps.core.commands import TouchstoneCommand\n"
        "import django.core.management as m\n"
        "class Talk(TouchstoneCommand):\n"
        "    needs_database = False\n"
        "    def run(self, **_):\n"
        "        while True:\n"
        "            self.stdout.write('word')\n"
        "m.load_command_class = lambda app, name: Talk()\n"
        "m.get_commands = lambda: {'talk': 'x'}\n"
        "execute_from_command_line(['manage.py', 'talk'])\n"
    )
    environment = os.environ | {"DJANGO_SETTINGS_MODULE": "apps.config.settings"}
    talking = subprocess.Popen(
        [sys.executable, "-c", code],
        cwd=ROOT,
        env=environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    assert talking.stdout is not None and talking.stderr is not None
    assert talking.stdout.readline() == "word\n"
    talking.stdout.close()
    assert talking.wait(timeout=60) == 141
    assert talking.stderr.read() == ""
    talking.stderr.close()
