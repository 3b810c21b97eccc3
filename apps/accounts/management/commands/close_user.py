"""Close a person's account, or open it again."""

from typing import Any

from django.core.management.base import CommandParser

from apps.accounts import leaving, services
from apps.core.commands import TouchstoneCommand


class Command(TouchstoneCommand):
    help = "Close an account: sessions, keys and links end, held items are free; or open it again."

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("email")
        parser.add_argument("--reason", default="", help="kept in the audit trail")
        parser.add_argument("--reopen", action="store_true")

    def run(self, *, email: str, reason: str, reopen: bool) -> dict[str, Any]:
        user = services.user_for(email)
        if reopen:
            leaving.reopen_account(user=user, by=None)
            self.say(f"{user.email} may sign in again. Sessions and keys stay ended.")
            return {"active": True}
        done = leaving.close_account(user=user, by=None, reason=reason)
        self.say(f"Closed {user.email}. {', '.join(f'{name}: {count}' for name, count in done.items())}")
        return {"active": False, **done}
