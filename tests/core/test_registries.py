"""What apps register is there whenever it is read, though nothing is loaded when Django starts."""

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from django.apps import apps

from apps.core import registries
from apps.core.registries import NamedRegistry, Registry

ROOT = Path(__file__).parents[2]
# What the start of a command must not import: each takes longer than most commands do.
HEAVY = (
    "apps.trajectories.formats",
    "celery",
    "django.test",
    "httpx",
    "jinja2",
    "kombu",
    "ninja",
    "numpy",
    "openai",
    "PIL",
    "pydantic",
    "rich",
    "scipy",
    "sqlalchemy",
    "starlette",
    "torch",
    "transformers",
    "uvicorn",
)
SETUP = "import os, sys\nos.environ['DJANGO_SETTINGS_MODULE'] = 'apps.config.settings'\nimport django\ndjango.setup()\n"


def _printed(code: str) -> str:
    done = subprocess.run(
        [sys.executable, "-c", SETUP + code],
        cwd=ROOT,
        env={**os.environ, "TOUCHSTONE_DEBUG": ""},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr[-3000:]
    return done.stdout.strip()


def _loaded_after(code: str, names: tuple[str, ...] = HEAVY) -> str:
    return _printed(f"{code}\nprint(*sorted(set({names!r}) & sys.modules.keys()))")


@pytest.mark.parametrize("command", ["create_project", "create_user", "create_api_key", "up", "restore"])
def test_commands_start_without_what_they_do_not_need(command: str) -> None:
    code = "from django.core.management import get_commands, load_command_class\n"
    assert _loaded_after(f"{code}load_command_class(get_commands()[{command!r}], {command!r})") == ""


def test_beat_needs_neither_celery_nor_torch() -> None:
    code = """
from django.core.management import load_command_class
load_command_class('apps.core', 'beat')
from apps.core.registries import load_registrations
load_registrations()
"""
    names = ("celery", "kombu", "openai", "scipy", "sqlalchemy", "torch", "transformers", "uvicorn")
    assert _loaded_after(code, names) == ""


@pytest.mark.parametrize(
    "entries",
    [
        "apps.accounts.leaving:_CLOSING",
        "apps.annotation.feedback.exports:EXPORTS",
        "apps.core.health:CHECKS",
        "apps.core.jobs.job_queue:ENDED_LISTENERS",
        "apps.core.jobs.job_queue:JOB_TYPES",
        "apps.core.jobs.periodic:PERIODIC",
        "apps.core.storage.encryption:_FIELDS",
        "apps.datasets.derived_records:DERIVED_SOURCES",
        "apps.datasets.erased_words:_ERASING",
        "apps.datasets.export_jobs:ARCHIVE_REMOVERS",
        "apps.inbox.job_notices:LISTENERS",
        "apps.inbox.job_notices:_NOTICES",
        "apps.monitoring.extensions:_alert_actions",
        "apps.reward_programs.program_uses:_USES",
        "apps.trajectories.filter_queries:_conditions",
        "apps.trajectories.notes:_SOURCES",
        "apps.trajectories.view_permissions:_SOURCES",
    ],
)
def test_the_first_read_finds_the_entries_of_every_app(entries: str) -> None:
    module, _, name = entries.partition(":")
    count = _printed(f"from {module} import {name}\nprint(sum(1 for _ in {name}))")
    registries.load_registrations()
    registry = getattr(sys.modules.get(module) or __import__(module, fromlist=[name]), name)
    assert isinstance(registry, Registry | NamedRegistry)
    assert int(count) == len(registry._entries) > 0


def test_every_registered_task_is_defined() -> None:
    code = """
from apps.core.jobs.broker import celery
from apps.core.jobs.job_queue import JOB_TYPES
celery().loader.import_default_modules()
print(len(JOB_TYPES), *sorted({job_type.task for job_type in JOB_TYPES} - set(celery().tasks)))
"""
    count, *missing = _printed(code).split()
    assert (int(count) > 15, missing) == (True, [])


@pytest.fixture
def nothing_loaded(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setattr(registries, "_progress", {"begun": False, "done": False})
    yield


@pytest.mark.usefixtures("nothing_loaded")
def test_an_app_that_fails_to_register_is_not_passed_over(monkeypatch: pytest.MonkeyPatch) -> None:
    failures = ["the database is away"]

    def register() -> None:
        if failures:
            raise RuntimeError(failures.pop())

    monkeypatch.setattr(apps.get_app_config("demo"), "register", register)
    registry = Registry(["own"])
    with pytest.raises(RuntimeError, match="the database is away"):
        list(registry)
    assert list(registry) == ["own"]


def test_entries_keep_their_order_and_are_there_once() -> None:
    registry = Registry(["a"])
    for entry in ("b", "a", "c"):
        registry.add(entry)
    assert (list(registry), len(registry), registry[0], registry[1:], "c" in registry) == (
        ["a", "b", "c"], 3, "a", ["b", "c"], True,
    )  # fmt: skip
    named = NamedRegistry({"a": 1})
    named["b"], named["a"] = 2, 3
    assert (dict(named), list(named), named.get("z")) == ({"a": 3, "b": 2}, ["a", "b"], None)
