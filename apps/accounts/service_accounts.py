"""Service accounts: programs that own keys, so that a job goes on when the person who set it up leaves."""

from django.core.exceptions import ValidationError
from django.core.validators import validate_slug
from django.db import transaction

from apps.accounts.audit_trail import record_audit
from apps.accounts.models import Project, ServiceAccount, User
from apps.core.errors import DomainError

COMMAND_LINE_ACCOUNT = "command-line"  # of keys that `create_api_key` makes for no one else
IMPORTED_ACCOUNT = "imported-keys"  # of keys whose maker had left before keys had owners


@transaction.atomic
def service_account_for(*, project: Project, name: str, by: User | None) -> ServiceAccount:
    """The project's service account of this name, made if there is none. Raises DomainError for one that is closed."""
    name = name.strip()
    account = ServiceAccount.objects.filter(project=project, name=name).first()
    if account is None:
        _check_name(name)
        account, created = ServiceAccount.objects.get_or_create(
            project=project, name=name, defaults={"created_by": by}
        )
        if created:
            record_audit(project=project, actor=by, verb="service-account.created", target=name)
    if not account.is_active:
        raise DomainError(
            f"The service account {name} is closed; choose another name.", pointer="/service_account"
        )
    return account


def _check_name(name: str) -> None:
    try:
        validate_slug(name)
    except ValidationError as error:
        raise DomainError(
            f"{name[:60]!r} cannot be a service account's name: use letters, digits, hyphens and underscores.",
            pointer="/service_account",
        ) from error
    if len(name) > 60:
        raise DomainError(f"The name has {len(name)} characters; at most 60 fit.", pointer="/service_account")
