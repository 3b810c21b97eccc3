"""The operator's way to change what a project asks of its members' sessions: an owner may be locked out by it."""

from argparse import BooleanOptionalAction
from typing import Any

from django.core.management.base import CommandParser

from apps.accounts import services
from apps.core.commands import TouchstoneCommand


class Command(TouchstoneCommand):
    help = (
        "Set whether a project requires a second factor or single sign-on of its members; prints the rules."
    )

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("project", metavar="SLUG")
        parser.add_argument("--two-factor", action=BooleanOptionalAction, default=None)
        parser.add_argument("--single-sign-on", action=BooleanOptionalAction, default=None)

    def run(self, *, project: str, two_factor: bool | None, single_sign_on: bool | None) -> dict[str, Any]:
        found = services.project_for(project)
        services.change_sign_in_rules(
            project=found,
            require_two_factor=found.require_two_factor if two_factor is None else two_factor,
            require_single_sign_on=found.require_single_sign_on if single_sign_on is None else single_sign_on,
            by=None,
        )
        self.say(f"Two-factor authentication: {'required' if found.require_two_factor else 'not required'}.")
        self.say(f"Single sign-on: {'required' if found.require_single_sign_on else 'not required'}.")
        return {
            "slug": found.slug,
            "two_factor": found.require_two_factor,
            "single_sign_on": found.require_single_sign_on,
        }
