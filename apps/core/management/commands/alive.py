import socket
from typing import Any

from django.core.management.base import CommandParser

from apps.core.commands import TouchstoneCommand
from apps.core.errors import DomainError
from apps.core.processes.heartbeats import NAMES, process_statuses


class Command(TouchstoneCommand):
    help = "Check whether a process of this machine or container is alive, for health checks. Exit status 1 if none is."

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("name", nargs="?", choices=NAMES, help="of the process; any, if left out")

    def run(self, *, name: str | None) -> dict[str, Any]:
        here = [
            each
            for each in process_statuses()
            if each.service.host == socket.gethostname() and not each.is_silent
        ]
        found = sorted({each.service.name for each in here} & ({name} if name else set(NAMES)))
        if not found:
            raise DomainError(
                f"No process {name or 'of Touchstone'} on {socket.gethostname()} was heard of for 30 s."
            )
        return {"alive": found}
