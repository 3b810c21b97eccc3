"""export_trajectories PROJECT: JSON lines, streamed."""

import sys
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from django.core.management.base import CommandParser

from apps.accounts.services import project_for, record_audit
from apps.core.commands import TouchstoneCommand
from apps.core.errors import DomainError
from apps.trajectories import exports
from apps.trajectories.selectors import JUDGED, best_of_tasks, fact_names, filter_trajectories


class Command(TouchstoneCommand):
    help = "Export trajectories as JSON lines. `original` gives back the imported records byte for byte."

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("project")
        parser.add_argument("--format", required=True, help=", ".join(exports.FORMATS))
        parser.add_argument("--out", metavar="FILE", help="standard output if left out")
        parser.add_argument("--task", default="", help="only those of the task with this id")
        parser.add_argument("--agent", default="", help="only those of the agent with this name")
        parser.add_argument("--speaker", default="", help="only those in which one of this name speaks")
        parser.add_argument("--success", choices=["true", "false"], help="only those with this outcome")
        parser.add_argument("--by", metavar="METRIC", default="", help="only those judged by this metric")
        parser.add_argument(
            "--judged", choices=list(JUDGED), default="", help="only those that metrics found so"
        )
        parser.add_argument(
            "--best-of-task", action="store_true", help="of each task only the run that metrics found best"
        )
        parser.add_argument(
            "--since", metavar="DATE", help="only those imported then or later: 2030-01-31, or with a time"
        )

    def run(
        self,
        *,
        project: str,
        format: str,
        out: str | None,
        task: str,
        agent: str,
        speaker: str,
        success: str | None,
        since: str | None,
        by: str,
        judged: str,
        best_of_task: bool,
        **_: Any,
    ) -> dict[str, Any]:
        exports.check_format(format)
        if self.as_json and out is None:
            raise DomainError(
                "--json says how it went on standard output; name a file for the records with --out."
            )
        owner = project_for(project)
        rows = filter_trajectories(
            owner,
            task=task,
            agent=agent,
            speaker=speaker,
            success=None if success is None else success == "true",
            since=_moment(since),
            fact=by,
            judged=judged,
        )
        if (by or judged or best_of_task) and by not in ("", *(known := fact_names(owner))):
            raise DomainError(f"There is no metric {by!r}; known are {', '.join(known) or 'none'}.")
        if best_of_task:
            rows = best_of_tasks(rows, by)
        asked: dict[str, Any] = {
            "format": format,
            "task": task,
            "agent": agent,
            "speaker": speaker,
            "success": success,
            "since": since,
        }
        asked |= {"by": by, "judged": judged, "best_of_task": best_of_task}
        data = {name: value for name, value in asked.items() if value}
        record_audit(project=owner, actor=None, verb="trajectories.exported", target=format, data=data)
        written = 0
        with self.progress(rows.count(), "Exporting") as progress:
            stream = _create(out) if out is not None else sys.stdout.buffer
            try:
                for line in exports.export_lines(owner, rows, format=format):
                    stream.write(line)
                    written += 1
                    progress.advance()
            finally:
                stream.close() if out is not None else stream.flush()
        if out is not None:
            self.say(f"Wrote {written} trajectories to {out}.")
        return {"exported": written, "file": out}


def _create(name: str) -> Any:
    try:
        return Path(name).open("wb")
    except OSError as error:
        raise DomainError(f"{name} cannot be written: {error.strerror}.") from None


def _moment(text: str | None) -> datetime | None:
    if text is None:
        return None
    try:
        moment = datetime.fromisoformat(text)
    except ValueError:
        raise DomainError(
            f"{text!r} is no date; write it as 2030-01-31 or 2030-01-31T12:00:00+00:00."
        ) from None
    return moment if moment.tzinfo else moment.replace(tzinfo=UTC)
