"""For someone who lost their second factor and their recovery codes."""

from typing import Any

from django.core.management.base import CommandParser

from apps.accounts import services
from apps.accounts.second_factor import reset_second_factor
from apps.core.commands import TouchstoneCommand


class Command(TouchstoneCommand):
    help = "Take every second factor from a user's account. Their sessions end."

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("email")

    def run(self, *, email: str) -> dict[str, Any]:
        user = services.user_for(email)
        count = reset_second_factor(user=user, by=None)
        self.say(f"{user.email} has no second factor now ({count} removed); the password alone logs in.")
        return {"email": user.email, "removed": count}
