"""What every command shares: `--json`, errors in one line, progress on a terminal and plain lines in a pipe."""

import json
import os
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from django.conf import settings
from django.core.management.base import BaseCommand, CommandError, CommandParser
from django.db import DatabaseError, InterfaceError

from apps.core.database import embedded_postgres
from apps.core.database.migration_state import require_applied_migrations
from apps.core.database.outage import in_words as outage_in_words
from apps.core.database.outage import is_outage
from apps.core.errors import DomainError
from apps.core.jobs.job_queue import Job, JobState
from apps.core.storage import private_files
from apps.core.storage.disk_space import in_words
from apps.core.storage.store_identity import (
    refuse_other_store,
    require_own_store,
    warn_of_unavailable_store,
)
from workers.errors import RewardError

if TYPE_CHECKING:
    from rich.progress import Progress as Bar
    from rich.progress import TaskID

_DJANGOS = (
    "settings",
    "pythonpath",
    "traceback",
    "no_color",
    "force_color",
    "skip_checks",
    "verbosity",
    "json",
    "stdout",
    "stderr",
    "home",
)
_PIPE = 141  # what a shell reports of a program that SIGPIPE ended
_POLL = 0.5  # seconds between looks at a job that is followed
_PATIENCE = 15.0  # seconds it may wait in the queue before it is said why
_LINE_EVERY = 5.0  # seconds between progress lines in a pipe


def _plain(text: str) -> str:
    return text  # standard error is not red: it carries progress too


class Error(CommandError):
    """Printed as `Error: <sentence>`, exit status 1."""


class CommandFailed(Exception):
    """The command did not succeed, yet has a result to print: exit status 1."""

    def __init__(self, message: str, *, result: dict[str, Any]) -> None:
        super().__init__(message)
        self.result = result


class TouchstoneCommand(BaseCommand):
    """Subclasses write `run`, which takes the command's own options and returns the object `--json` prints.

    For people they call `self.say` and `self.progress`. DomainError and RewardError become one line and exit status 1.
    """

    needs_database = True
    # Whether the artifact store has to be the installation's. "write": and can be written, before a process starts;
    # "read": the process starts although it cannot be reached; "check": where the installation has one already.
    store_access: Literal["", "check", "read", "write"] = ""
    # They import every page. `migrate`, `web`, `doctor` and `check` have them.
    requires_system_checks: list[str] | tuple[str, ...] | Literal["__all__"] = []

    def create_parser(self, prog_name: str, subcommand: str, **kwargs: Any) -> CommandParser:
        parser = super().create_parser(prog_name, subcommand, **kwargs)
        parser.add_argument(
            "--json",
            action="store_true",
            help="one JSON object on standard output, everything else on standard error",
        )
        parser.add_argument(
            "--home",
            metavar="DIR",
            help="folder of the database, artifacts and logs (default: TOUCHSTONE_HOME, or var/)",
        )
        return parser

    def run(self, *args: Any, **options: Any) -> dict[str, Any]:
        raise NotImplementedError

    def handle(self, *args: Any, **options: Any) -> None:
        self.as_json: bool = options["json"]
        home = options["home"]
        if home and Path(home).expanduser().resolve() != settings.HOME:  # manage.py put it in the environment
            raise Error(
                f"The settings were read for {settings.HOME}; set TOUCHSTONE_HOME={home} before they are."
            )
        private_files.close_home(settings.HOME)
        try:
            if self.needs_database:
                self._require_database()
            if self.store_access == "write":
                require_own_store(writes=True)
            elif self.store_access == "check":
                refuse_other_store()
            elif self.store_access:
                warn_of_unavailable_store()
            result = self.run(**{name: value for name, value in options.items() if name not in _DJANGOS})
        except CommandFailed as failure:
            self._print(failure.result)
            raise Error(str(failure)) from failure
        except (DomainError, RewardError) as error:
            where = f" (at {error.pointer})" if error.pointer else ""
            self._print({"error": {"message": error.message, "pointer": error.pointer}})
            raise Error(f"{error.message}{where}") from error
        except (DatabaseError, InterfaceError) as error:
            if not is_outage(error):
                raise
            told = outage_in_words(error)
            self._print({"error": {"message": told, "pointer": None}})
            raise Error(told) from error
        except BrokenPipeError:  # the reader has read enough
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
            raise SystemExit(_PIPE) from None
        except OSError as error:
            if (sentence := in_words(error)) is None:
                raise
            self._print({"error": {"message": sentence, "pointer": None}})
            raise Error(sentence) from error
        self._print(result)

    def _require_database(self) -> None:
        """Raise DomainError where it is not there, or of another version."""
        if settings.DATABASE_IS_EMBEDDED:
            embedded_postgres.require(settings.HOME)
        try:
            require_applied_migrations()
        except (DatabaseError, InterfaceError) as error:
            if not is_outage(error):
                raise
            raise DomainError(
                f"The database of DATABASE_URL cannot be reached: {' '.join(str(error).split())} Start it, or correct "
                "the address."
            ) from error

    def say(self, text: str) -> None:
        """A line for people: standard output, or standard error when standard output is for JSON."""
        out = self.stderr if self.as_json else self.stdout
        out.write(text, _plain)
        out.flush()  # into a pipe too, where a command stays up

    def note(self, text: str) -> None:
        """A line for people on standard error, next to the one value on standard output that scripts read."""
        self.stderr.write(text, _plain)

    def follow(self, job: Job, what: str) -> None:
        """Until it has come to its end, showing how far it is."""
        begun, said = time.monotonic(), False
        with self.progress(None, what) as progress:
            while not job.is_finished:
                if job.state == JobState.QUEUED and not said and time.monotonic() - begun > _PATIENCE:
                    self.say(f"No worker has taken {what} yet; is `worker gpu` running?")
                    said = True
                time.sleep(_POLL)
                job.refresh_from_db()
                done, total = job.progress.get("done") or 0, job.progress.get("total")
                progress.update(done, total=total, note=job.progress.get("note") or job.state)

    @contextmanager
    def progress(self, total: int | None, label: str) -> Iterator["CommandProgress"]:
        """Progress on standard error: a bar on a terminal, a line every few seconds in a pipe."""
        if not self.stderr.isatty():
            progress = CommandProgress(self, total, label)
            yield progress
            progress.line()
            return
        from rich.console import Console
        from rich.progress import Progress as Bar

        with Bar(console=Console(stderr=True), transient=True) as bar:
            yield CommandProgress(self, total, label, bar, bar.add_task(label, total=total))

    def _print(self, result: dict[str, Any]) -> None:
        if self.as_json:
            self.stdout.write(json.dumps(result, ensure_ascii=False, default=str))


class CommandProgress:
    def __init__(
        self,
        command: TouchstoneCommand,
        total: int | None,
        label: str,
        bar: "Bar | None" = None,
        task: "TaskID | None" = None,
    ) -> None:
        self.done, self.total, self.label = 0, total, label
        self._command, self._bar, self._task = command, bar, task
        self._printed = time.monotonic()

    def advance(self, by: int = 1) -> None:
        self.update(self.done + by)

    def update(self, done: int, *, total: int | None = None, note: str = "") -> None:
        """done, total: absolute. note: put after the label."""
        self.done, self.total = done, total if total is not None else self.total
        if self._bar is not None and self._task is not None:
            described = f"{self.label} {note}".rstrip()
            self._bar.update(self._task, completed=done, total=self.total, description=described)
        elif time.monotonic() - self._printed >= _LINE_EVERY:
            self.line(note)

    def line(self, note: str = "") -> None:
        self._printed = time.monotonic()
        of = f"/{self.total}" if self.total is not None else ""
        count = "" if note and not self.done and not of else f"{self.done}{of} "
        self._command.stderr.write(f"{self.label}: {count}{note}".rstrip(), _plain)
