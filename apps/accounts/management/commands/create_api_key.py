"""Make an API key of a project."""

from datetime import timedelta
from typing import Any

from django.core.management.base import CommandParser
from django.utils import timezone

from apps.accounts import services
from apps.accounts.models import Scope
from apps.core.commands import TouchstoneCommand


class Command(TouchstoneCommand):
    help = "Make an API key; it is printed once and cannot be shown again."

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("project")
        parser.add_argument("--scopes", required=True, help=f"separated by commas: {','.join(Scope.values)}")
        parser.add_argument("--name", default="", help="what it is for")
        parser.add_argument("--days", type=int, help="expires after so many days; never if left out")

    def run(self, *, project: str, scopes: str, name: str, days: int | None) -> dict[str, Any]:
        key, secret = services.create_api_key(
            project=services.project_for(project),
            scopes=[scope.strip() for scope in scopes.split(",") if scope.strip()],
            name=name,
            expires_at=timezone.now() + timedelta(days=days) if days is not None else None,
        )
        self.say(
            f"A key of {project} with the scopes {', '.join(key.scopes)}; it is not shown again:\n{secret}"
        )
        return {"key": secret, "prefix": key.prefix, "scopes": key.scopes}
