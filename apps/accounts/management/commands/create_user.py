"""Make a user, and a member of a project."""

import getpass
from pathlib import Path
from typing import Any

from django.core.management.base import CommandParser
from django.db import transaction

from apps.accounts import services
from apps.accounts.models import Role
from apps.accounts.password_files import read_password_file
from apps.core.commands import TouchstoneCommand
from apps.core.errors import DomainError


class Command(TouchstoneCommand):
    help = "Create a user with a password, printed once, and a member of a project."

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("email")
        parser.add_argument("--name", default="")
        parser.add_argument("--project", metavar="SLUG")
        parser.add_argument("--role", choices=Role.values, default=Role.ANNOTATOR.value)
        parser.add_argument(
            "--ask-password", action="store_true", help="type the password instead of generating one"
        )
        parser.add_argument(
            "--password-file", metavar="FILE", type=Path, help="the password is the first line of this file"
        )
        parser.add_argument(
            "--change-password",
            action="store_true",
            help="the password has to be changed at the first login, so that you do not know it",
        )
        parser.add_argument(
            "--verified", action="store_true", help="you know that the address belongs to this person"
        )

    def run(
        self,
        *,
        email: str,
        name: str,
        project: str | None,
        role: str,
        ask_password: bool,
        password_file: Path | None,
        change_password: bool,
        verified: bool,
    ) -> dict[str, Any]:
        chosen = read_password_file(password_file) if password_file else self._ask() if ask_password else None
        said = []
        with transaction.atomic():
            user, password = services.create_user(
                email=email,
                password=chosen,
                name=name,
                must_change_password=change_password,
                is_verified=verified,
            )
            said.append(f"Created the user {user.email}.")
            if project:
                membership = services.set_member(
                    project=services.project_for(project), user=user, role=Role(role), by=None
                )
                said.append(f"{membership}.")
        if chosen is None:
            changed = ", to be changed at the first login" if change_password else ""
            said.append(f"Password (shown once{changed}): {password}")
        for line in said:
            self.say(line)
        return {"email": user.email, "password": password}

    def _ask(self) -> str:
        first, second = getpass.getpass(), getpass.getpass("Password again: ")
        if first != second:
            raise DomainError("The two passwords differ; nothing was created.")
        return first
