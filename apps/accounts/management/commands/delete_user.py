"""Delete a person's account."""

from typing import Any

from django.core.management.base import CommandParser

from apps.accounts import leaving, services
from apps.core.commands import TouchstoneCommand


class Command(TouchstoneCommand):
    help = "Delete an account and its personal data; annotations stay under a pseudonym."

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("email")
        parser.add_argument("--reason", required=True, help="kept in the audit trail")
        parser.add_argument("--erase-comments", action="store_true", help="the text of comments too")

    def run(self, *, email: str, reason: str, erase_comments: bool) -> dict[str, Any]:
        user = services.user_for(email)
        done = leaving.delete_user(user=user, by=None, reason=reason, erase_comments=erase_comments)
        self.say(f"Deleted. {', '.join(f'{name}: {count}' for name, count in done.items())}.")
        return {"deleted": True, **done}
