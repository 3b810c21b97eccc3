"""Make a token to join a machine with."""

from typing import Any

from django.conf import settings
from django.core.management.base import CommandParser

from apps.accounts.services import project_for
from apps.core.commands import TouchstoneCommand
from apps.core.errors import DomainError
from apps.machines.services import DEFAULT_HOURS, create_join_token


class Command(TouchstoneCommand):
    help = "Create a token to join a machine with; it is printed once and cannot be shown again."

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("project", nargs="?", default="", help="whose runs the machine trains")
        parser.add_argument(
            "--all-projects", action="store_true", help="the machine trains runs of every project"
        )
        parser.add_argument("--hours", type=int, default=DEFAULT_HOURS, help="until it expires (default: 24)")

    def run(self, *, project: str, all_projects: bool, hours: int) -> dict[str, Any]:
        if bool(project) == all_projects:
            raise DomainError("Name the project whose runs the machine trains, or give --all-projects.")
        found = project_for(project) if project else None
        token, secret = create_join_token(project=found, by=None, hours=hours)
        runs = f"runs of {project}" if project else "runs of all projects"
        self.note(
            f"Joins one machine for {runs} until {token.expires_at:%Y-%m-%d %H:%M} UTC, by `touchstone join "
            f"{settings.CLUSTER_URL} --token TOKEN`; it is not shown again:"
        )
        self.say(secret)
        return {"token": secret, "prefix": token.prefix, "expires_at": token.expires_at.isoformat()}
