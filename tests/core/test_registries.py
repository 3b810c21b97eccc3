"""What apps register is there whenever it is read, though nothing is loaded when Django starts."""

import json
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
# The settings read, and no more. For each line with code a fork that runs it; the reply says how it ended.
STARTED = """
import json, os, sys, tempfile
os.environ["DJANGO_SETTINGS_MODULE"] = "apps.config.settings"
import django
django.setup()
for line in sys.stdin:
    with tempfile.TemporaryFile("w+") as out, tempfile.TemporaryFile("w+") as errors:
        sys.stdout.flush()
        pid = os.fork()
        if pid == 0:
            os.dup2(out.fileno(), 1)
            os.dup2(errors.fileno(), 2)
            status = 1
            try:
                exec(json.loads(line), {})
                status = 0
            except BaseException:
                import traceback
                traceback.print_exc()
            sys.stdout.flush()
            sys.stderr.flush()
            os._exit(status)
        status = os.waitpid(pid, 0)[1]
        out.seek(0)
        errors.seek(0)
        print(json.dumps([status, out.read(), errors.read()]), flush=True)
"""
# The fork that reads registries has imported what they are filled from, and has filled none: a fork of it for each.
FIRST_READS = """
import importlib, json, os, sys
def forked(function, *arguments):
    reading, writing = os.pipe()
    if os.fork() == 0:
        with os.fdopen(writing, "w") as out:
            json.dump(function(*arguments), out)
        os._exit(0)
    os.close(writing)
    with os.fdopen(reading) as text:
        found = json.load(text)
    os.wait()
    return found
def count(entries):
    module, _, name = entries.partition(":")
    return sum(1 for _ in getattr(importlib.import_module(module), name))
def first_of_all():
    counts = {entries: count(entries) for entries in REGISTRIES}
    return counts, [name for name in sys.modules if name.startswith(("apps.", "workers."))]
after_one, modules = forked(first_of_all)
for name in modules:
    importlib.import_module(name)
from apps.core import registries
assert registries._progress == {"begun": False, "done": False}
print(json.dumps({entries: [after_one[entries], forked(count, entries)] for entries in REGISTRIES}))
"""
REGISTRIES = (
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
    "apps.trajectories.explorer_columns:_COLUMNS",
    "apps.trajectories.filter_queries:_conditions",
    "apps.trajectories.notes:_SOURCES",
    "apps.trajectories.step_marks:_SOURCES",
    "apps.trajectories.view_permissions:_SOURCES",
)


class StartedProcess:
    """Runs code as in a process that has just started Django; in a fork of one, so that the settings are read once."""

    def __init__(self) -> None:
        self._process = subprocess.Popen(
            [sys.executable, "-c", STARTED],
            cwd=ROOT,
            env={**os.environ, "TOUCHSTONE_DEBUG": ""},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )

    def printed(self, code: str) -> str:
        """What the code prints."""
        given, replies = self._process.stdin, self._process.stdout
        assert given and replies
        given.write(f"{json.dumps(code)}\n")
        given.flush()
        status, out, errors = json.loads(replies.readline())
        assert status == 0, errors[-3000:]
        return out.strip()

    def loaded_after(self, code: str, names: tuple[str, ...] = HEAVY) -> str:
        return self.printed(f"{code}\nimport sys\nprint(*sorted(set({names!r}) & sys.modules.keys()))")

    def end(self) -> None:
        self._process.communicate()


@pytest.fixture(scope="module")
def started() -> Iterator[StartedProcess]:
    process = StartedProcess()
    yield process
    process.end()


@pytest.fixture(scope="module")
def first_reads(started: StartedProcess) -> dict[str, list[int]]:
    """Of each registry its entries after another one was read first, and after it was read first."""
    return json.loads(started.printed(f"REGISTRIES = {REGISTRIES!r}{FIRST_READS}"))


@pytest.mark.parametrize("command", ["create_project", "create_user", "create_api_key", "up", "restore"])
def test_commands_start_without_what_they_do_not_need(command: str, started: StartedProcess) -> None:
    code = "from django.core.management import get_commands, load_command_class\n"
    assert started.loaded_after(f"{code}load_command_class(get_commands()[{command!r}], {command!r})") == ""


def test_beat_needs_neither_celery_nor_torch(started: StartedProcess) -> None:
    code = """
from django.core.management import load_command_class
load_command_class('apps.core', 'beat')
from apps.core.registries import load_registrations
load_registrations()
"""
    names = ("celery", "kombu", "openai", "scipy", "sqlalchemy", "torch", "transformers", "uvicorn")
    assert started.loaded_after(code, names) == ""


@pytest.mark.parametrize("entries", REGISTRIES)
def test_the_first_read_finds_the_entries_of_every_app(
    entries: str, first_reads: dict[str, list[int]]
) -> None:
    module, _, name = entries.partition(":")
    registries.load_registrations()
    registry = getattr(sys.modules.get(module) or __import__(module, fromlist=[name]), name)
    assert isinstance(registry, Registry | NamedRegistry)
    assert first_reads[entries] == [len(registry._entries)] * 2
    assert len(registry._entries) > 0


def test_every_registered_task_is_defined(started: StartedProcess) -> None:
    code = """
from apps.core.jobs.broker import celery
from apps.core.jobs.job_queue import JOB_TYPES
celery().loader.import_default_modules()
print(len(JOB_TYPES), *sorted({job_type.task for job_type in JOB_TYPES} - set(celery().tasks)))
"""
    count, *missing = started.printed(code).split()
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
