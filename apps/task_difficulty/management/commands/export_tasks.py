"""export_tasks PROJECT --order ORDER: JSON lines, those to run first at the front."""

import sys
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

from django.core.management.base import CommandParser

from apps.accounts.services import project_for, record_audit
from apps.core.commands import TouchstoneCommand
from apps.core.errors import DomainError
from apps.task_difficulty.exports import task_lines
from apps.task_difficulty.selectors import CHOICES
from apps.trajectories.filters import parse_filter
from workers.task_difficulty import ORDERS


class Command(TouchstoneCommand):
    help = "Export the tasks of a project in the order to run them, with their difficulty and failed trajectories."

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("project")
        orders = "; ".join(f"{name}: {order.label.lower()}" for name, order in ORDERS.items())
        parser.add_argument("--order", choices=list(ORDERS), default="learnability", help=orders)
        choices = "; ".join(f"{name}: {label.lower()}" for name, label in CHOICES.items())
        parser.add_argument("--only", choices=list(CHOICES), default="all", help=choices)
        parser.add_argument("--agent", default="", help="only the outcomes of the agent with this name count")
        parser.add_argument(
            "--filter",
            default="",
            metavar="QUERY",
            help="only the outcomes of these trajectories count: a filter as the address of their list has it",
        )
        parser.add_argument("--most", type=int, metavar="N", help="tasks; all if left out")
        parser.add_argument("--out", metavar="FILE", help="standard output if left out")

    def run(
        self,
        *,
        project: str,
        order: str,
        only: str,
        agent: str,
        filter: str,
        most: int | None,
        out: str | None,
        **_: Any,
    ) -> dict[str, Any]:
        if self.as_json and out is None:
            raise DomainError(
                "--json writes its summary to standard output; name a file for the tasks with --out."
            )
        if most is not None and most < 1:
            raise DomainError(f"--most is {most}; it must be at least 1.")
        owner = project_for(project)
        named = urlencode({"agent": agent}) if agent else ""
        source = parse_filter("&".join(part for part in (filter.strip("?&"), named) if part)).query
        lines = task_lines(owner, source=source, order=order, choice=only, most=most)
        data = {"order": order, "only": only, "filter": source}
        record_audit(project=owner, actor=None, verb="tasks.exported", target=order, data=data)
        written = 0
        stream = _create(out) if out is not None else sys.stdout.buffer
        try:
            for line in lines:
                stream.write(line)
                written += 1
        finally:
            stream.close() if out is not None else stream.flush()
        if not written:
            self.warn_of_no_tasks(only)
        if out is not None:
            self.say(f"Wrote {written} tasks to {out}.")
        return {"exported": written, "file": out}

    def warn_of_no_tasks(self, only: str) -> None:
        reason = "No outcome is known" if only == "all" else f"There are none of: {CHOICES[only].lower()}"
        sys.stderr.write(f"{reason}; no task was exported.\n")


def _create(name: str) -> Any:
    try:
        return Path(name).open("wb")
    except OSError as error:
        raise DomainError(f"{name} cannot be written: {error.strerror}.") from None
