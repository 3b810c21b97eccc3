"""A new password for someone who lost theirs."""

from pathlib import Path
from typing import Any

from django.core.management.base import CommandParser

from apps.accounts import services
from apps.accounts.password_files import read_password_file
from apps.accounts.passwords import reset_password
from apps.core.commands import TouchstoneCommand


class Command(TouchstoneCommand):
    help = (
        "Give a user a new password, printed once. Their sessions end; API keys and second factors stay. With "
        "`create_password_link` they choose it themselves."
    )

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("email")
        parser.add_argument(
            "--password-file", metavar="FILE", type=Path, help="the password is the first line of this file"
        )
        parser.add_argument(
            "--change-password",
            action="store_true",
            help="the password has to be changed at the next login, so that you do not know it",
        )

    def run(self, *, email: str, password_file: Path | None, change_password: bool) -> dict[str, Any]:
        user = services.user_for(email)
        chosen = read_password_file(password_file) if password_file else None
        password, sessions = reset_password(user=user, password=chosen, must_change_password=change_password)
        self.say(f"{user.email} has a new password; {sessions} sessions ended.")
        if chosen is None:
            changed = ", to be changed at the next login" if change_password else ""
            self.say(f"Password (shown once{changed}): {password}")
        return {"email": user.email, "password": password, "sessions": sessions}
