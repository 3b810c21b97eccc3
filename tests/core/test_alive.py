"""The health check of a container: whether a process of this host was heard of."""

import io
import json
import socket

import pytest
from django.core.management import CommandError, call_command

from tests.core.test_presence import service

pytestmark = pytest.mark.django_db


def _alive(*arguments: str) -> list[str]:
    out = io.StringIO()
    call_command("alive", *arguments, "--json", stdout=out, stderr=io.StringIO())
    return json.loads(out.getvalue())["alive"]  # type: ignore[no-any-return]


def test_it_tells_what_lives_here() -> None:
    service("beat", pid=1, host=socket.gethostname())
    assert _alive("beat") == ["beat"] and _alive() == ["beat"]


@pytest.mark.parametrize(
    ("name", "here", "silent"), [("web", True, 0.0), ("beat", False, 0.0), ("beat", True, 60.0)]
)
def test_others_elsewhere_and_silent_ones_do_not_count(name: str, here: bool, silent: float) -> None:
    service(name, pid=1, host=socket.gethostname() if here else "elsewhere", silent=silent)
    with pytest.raises(CommandError):
        _alive("beat")
