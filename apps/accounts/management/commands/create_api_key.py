"""Make an API key of a project."""

from datetime import UTC, datetime, time, timedelta
from typing import Any

from django.core.management.base import CommandParser
from django.db import transaction
from django.utils import timezone
from django.utils.dateparse import parse_date

from apps.accounts import keys, services
from apps.accounts.models import Project, Scope
from apps.accounts.service_accounts import COMMAND_LINE_ACCOUNT, service_account_for
from apps.core.commands import TouchstoneCommand
from apps.core.errors import DomainError

NEVER = "never"


class Command(TouchstoneCommand):
    help = "Create an API key; it is printed once and cannot be shown again."

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("project")
        parser.add_argument("--scopes", required=True, help=f"separated by commas: {','.join(Scope.values)}")
        parser.add_argument("--name", default="", help="what it is for")
        owner = parser.add_mutually_exclusive_group()
        owner.add_argument(
            "--service-account",
            help=f"whose key it is; {COMMAND_LINE_ACCOUNT} if left out; created if it does not exist",
        )
        owner.add_argument(
            "--user", help="the address of the member whose key it is; it ends when they leave"
        )
        expiry = parser.add_mutually_exclusive_group()
        expiry.add_argument("--days", type=int, help="days until the key expires")
        expiry.add_argument("--expires", help="the last day (YYYY-MM-DD), or `never`")
        for name, of in (("requests", "minute"), ("tokens", "minute"), ("tokens", "day")):
            parser.add_argument(f"--{name}-per-{of}", type=int, help=f"{name} per {of} at most; 0: no limit")
        parser.add_argument("--networks", default="", help="addresses it may be used from: CIDR, by commas")

    def run(self, *, project: str, scopes: str, name: str, networks: str, **options: Any) -> dict[str, Any]:
        found = services.project_for(project)
        limits = {key: options[key] for key in ("requests_per_minute", "tokens_per_minute", "tokens_per_day")}
        with transaction.atomic():
            key, secret = keys.create_api_key(
                project=found,
                scopes=[scope.strip() for scope in scopes.split(",") if scope.strip()],
                name=name,
                owner=_owner(found, options["user"], options["service_account"]),
                expires_at=_expiry(options["days"], options["expires"]),
                never_expires=options["expires"] == NEVER,
                limits=keys.KeyLimits(**limits, allowed_networks=tuple(networks.replace(",", " ").split())),
            )
        until = f"until {key.expires_at:%Y-%m-%d}" if key.expires_at else "without end"
        self.note(
            f"A key of {project} with the scopes {', '.join(key.scopes)}, {until}; it belongs to "
            f"{keys.owner_name(key.owner)} and is not shown again:"
        )
        self.say(secret)
        return {
            "key": secret,
            "prefix": key.prefix,
            "scopes": key.scopes,
            "owner": keys.owner_name(key.owner),
            "expires_at": key.expires_at and key.expires_at.isoformat(),
        }


def _owner(project: Project, user: str | None, account: str | None) -> keys.Owner:
    if user is not None:
        return services.user_for(user)
    return service_account_for(project=project, name=account or COMMAND_LINE_ACCOUNT, by=None)


def _expiry(days: int | None, day: str | None) -> datetime | None:
    if days is not None:
        return timezone.now() + timedelta(days=days)
    if day is None or day == NEVER:
        return None
    try:
        parsed = parse_date(day)
    except ValueError:
        parsed = None
    if parsed is None:
        raise DomainError(f"--expires is {day!r}; it must be a day such as 2027-01-31, or `never`.")
    return datetime.combine(parsed, time.min, UTC) + timedelta(days=1)
