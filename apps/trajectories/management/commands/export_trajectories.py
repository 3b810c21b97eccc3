"""export_trajectories PROJECT: JSON lines, streamed."""

import sys
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

from django.core.management.base import CommandParser

from apps.accounts.services import project_for, record_audit
from apps.core.commands import TouchstoneCommand
from apps.core.errors import DomainError
from apps.trajectories import exports
from apps.trajectories.filter_fields import JUDGED
from apps.trajectories.filter_queries import filter_trajectories
from apps.trajectories.filters import parse_filter
from apps.trajectories.selectors import best_of_tasks, fact_names


class Command(TouchstoneCommand):
    help = "Export trajectories as JSON lines. `original` gives back the imported records byte for byte."

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("project")
        parser.add_argument("--format", required=True, help=", ".join(exports.FORMATS))
        parser.add_argument("--out", metavar="FILE", help="standard output if left out")
        parser.add_argument(
            "--filter",
            default="",
            metavar="QUERY",
            help="the filter of the trajectory list as its address has it, such as agent=desk&success=no",
        )
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
        filter: str,
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
        named = {"task": task, "agent": agent, "speaker": speaker, "success": success, "since": since}
        named |= {"fact": by, "judged": judged}
        chosen = parse_filter("&".join(part for part in (filter.strip("?&"), _query(named)) if part))
        rows = filter_trajectories(owner, chosen)
        if (by or judged or best_of_task) and by not in ("", *(known := fact_names(owner))):
            raise DomainError(f"There is no metric {by!r}; known are {', '.join(known) or 'none'}.")
        if best_of_task:
            rows = best_of_tasks(rows, by)
        data = {"format": format, "filter": chosen.query} | ({"best_of_task": True} if best_of_task else {})
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


def _query(named: dict[str, str | None]) -> str:
    return urlencode([(name, value) for name, value in named.items() if value])
