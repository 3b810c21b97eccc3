"""docs/operations.md and what lies next to it are true."""

import re

import pytest
import yaml
from django.core.management import get_commands

from apps.core import health
from tests.faults.stack import ROOT

OPERATIONS = (ROOT / "docs" / "operations.md").read_text()
SETTINGS = (ROOT / "docs/settings.md").read_text()


def test_every_finding_is_explained() -> None:
    table = OPERATIONS.partition("| finding |")[2].partition("\n\n")[0]
    explained = {name.strip() for row in table.splitlines()[2:] for name in row.split("|")[1].split(",")}
    assert explained == {name for name, _, _ in health.CHECKS}


def test_compose_starts_commands_there_are() -> None:
    compose = yaml.safe_load((ROOT / "docs/operations/compose.yaml").read_text())
    ours = {name: one for name, one in compose["services"].items() if "build" in one}
    commands = [" ".join(own["command"]) for own in ours.values()]
    assert {command.split()[0] for command in commands} <= set(get_commands())
    assert {"worker default", "worker gpu", "beat"} < set(commands)
    for own in ours.values():
        assert (ROOT / "docs/operations" / own["build"]["context"] / own["build"]["dockerfile"]).is_file()
        assert {name.removesuffix("_FILE") for name in own["environment"]} <= _variables()


@pytest.mark.parametrize("unit", ["touchstone.service", "touchstone@.service"])
def test_units_are_stopped_by_a_signal_we_heed_and_given_time(unit: str) -> None:
    text = (ROOT / "docs/operations" / unit).read_text()
    assert "KillSignal" not in text  # SIGTERM
    assert int(re.search(r"TimeoutStopSec=(\d+)", text)[1]) >= 60  # type: ignore[index]
    assert "manage.py" in text and "Restart=always" in text


def test_every_setting_is_in_the_docs() -> None:
    assert _variables() == set(
        re.findall(
            r"`((?:TOUCHSTONE|DATABASE|CELERY)_[A-Z0-9_]+)`",
            SETTINGS,
        )
    )


def test_operations_names_no_setting_there_is_not() -> None:
    named = {name.removesuffix("_FILE") for name in re.findall(r"TOUCHSTONE_[A-Z0-9_]+", OPERATIONS)}
    assert named <= _variables()


def _variables() -> set[str]:
    """What the settings and `up` read of the environment."""
    text = "".join(path.read_text() for path in (ROOT / "apps/config").glob("*.py"))
    return set(re.findall(r"env_\w+\(\s*[\"']([A-Z0-9_]+)[\"']", text)) - {
        "AWS_ACCESS_KEY_ID",
        "AWS_SECRET_ACCESS_KEY",
        "AWS_SESSION_TOKEN",
    }
