"""The operator's way in where single sign-on is enforced and does not work."""

from typing import Any

from django.conf import settings
from django.core.management.base import CommandParser
from django.urls import reverse

from apps.accounts import account_links, services
from apps.accounts.account_links import Purpose
from apps.core.commands import TouchstoneCommand


class Command(TouchstoneCommand):
    help = (
        "Print a link, valid once and for 15 minutes, that logs a user in despite enforced single sign-on. A second "
        "factor is still required (`reset_two_factor`)."
    )

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("email")

    def run(self, *, email: str) -> dict[str, Any]:
        user = services.user_for(email)
        _, token = account_links.show_link(user=user, purpose=Purpose.LOGIN, by=None)
        services.record_audit(project=None, actor=None, verb="login-link.created", target=user.email)
        url = f"{settings.PUBLIC_URL}{reverse('accounts:account-link', args=[token])}"
        self.say(f"Anyone who opens this link is logged in as {user.email}; it works once, for 15 minutes:")
        self.say(url)
        return {"email": user.email, "link": url}
