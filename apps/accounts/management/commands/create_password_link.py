"""A link to a new password, for someone who lost theirs."""

from typing import Any

from django.conf import settings
from django.core.management.base import CommandParser
from django.urls import reverse

from apps.accounts import account_links, services
from apps.accounts.account_links import Purpose
from apps.core.commands import TouchstoneCommand


class Command(TouchstoneCommand):
    help = (
        "Print a link, good once and for three days, by which a user chooses a new password. Their sessions end; where "
        "nothing showed yet that the address is theirs, their API keys and second factor end too."
    )

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("email")

    def run(self, *, email: str) -> dict[str, Any]:
        user = services.user_for(email)
        link, token = account_links.show_link(user=user, purpose=Purpose.PASSWORD, by=None)
        services.record_audit(project=None, actor=None, verb="password-link.created", target=user.email)
        url = f"{settings.PUBLIC_URL}{reverse('accounts:account-link', args=[token])}"
        self.say(f"Hand this to {user.email}; it works once, until {link.expires_at:%Y-%m-%d %H:%M} UTC:")
        self.say(url)
        return {"email": user.email, "link": url}
