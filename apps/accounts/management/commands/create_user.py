"""Make a user, and a member of a project."""

import getpass
from typing import Any

from django.core.management.base import CommandParser
from django.db import transaction

from apps.accounts import services
from apps.accounts.models import Role
from apps.core.commands import TouchstoneCommand
from apps.core.errors import DomainError


class Command(TouchstoneCommand):
    help = "Make a user with a password, printed once, and a member of a project."

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("email")
        parser.add_argument("--name", default="")
        parser.add_argument("--project", metavar="SLUG")
        parser.add_argument("--role", choices=Role.values, default=Role.ANNOTATOR.value)
        parser.add_argument(
            "--ask-password", action="store_true", help="type the password instead of having one made"
        )

    def run(
        self, *, email: str, name: str, project: str | None, role: str, ask_password: bool
    ) -> dict[str, Any]:
        chosen = self._ask() if ask_password else None
        said = []
        with transaction.atomic():
            user, password = services.create_user(email=email, password=chosen, name=name)
            said.append(f"Made the user {user.email}.")
            if project:
                membership = services.set_member(
                    project=services.project_for(project), user=user, role=Role(role), by=None
                )
                said.append(f"{membership}.")
        if chosen is None:
            said.append(f"Password (shown once): {password}")
        for line in said:
            self.say(line)
        return {"email": user.email, "password": password}

    def _ask(self) -> str:
        first, second = getpass.getpass(), getpass.getpass("Password again: ")
        if first != second:
            raise DomainError("The two passwords differ; nothing was made.")
        return first
