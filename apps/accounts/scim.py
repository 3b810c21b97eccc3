"""SCIM 2.0 (RFC 7643, 7644): a directory tells this installation who has an account, and who no longer has.

Users only. A user who is made here has no password: they log in by single sign-on or by a link. DELETE closes the
account and hides it from the directory; deleting permanently is `delete_user`.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from django.db import transaction
from django.db.models import Q, QuerySet
from django.utils import timezone

from apps.accounts.audit_models import ScimIdentity
from apps.accounts.audit_trail import record_audit
from apps.accounts.leaving import close_account, reopen_account
from apps.accounts.models import User
from apps.accounts.pseudonyms import move_person
from apps.accounts.services import create_user_without_password
from apps.accounts.sessions import end_sessions
from apps.core.number_parsing import whole_number

USER = "urn:ietf:params:scim:schemas:core:2.0:User"
LIST = "urn:ietf:params:scim:api:messages:2.0:ListResponse"
ERROR = "urn:ietf:params:scim:api:messages:2.0:Error"
PATCH = "urn:ietf:params:scim:api:messages:2.0:PatchOp"
ACTOR = "SCIM"
MOST = 200  # of a page
_MOST_OPERATIONS = 100


class ScimError(Exception):
    """Answered as RFC 7644, 3.12."""

    def __init__(self, status: int, detail: str, kind: str = "") -> None:
        super().__init__(detail)
        self.status, self.detail, self.kind = status, detail, kind

    @property
    def body(self) -> dict[str, Any]:
        told = {"schemas": [ERROR], "status": str(self.status), "detail": self.detail}
        return told | ({"scimType": self.kind} if self.kind else {})


@dataclass(frozen=True)
class UserValues:
    user_name: str
    email: str
    name: str
    external_id: str
    active: bool


def users() -> QuerySet[ScimIdentity]:
    """Those the directory knows. A person of this installation is found by their address, too."""
    _adopt_others()
    return ScimIdentity.objects.select_related("user").filter(removed_at=None).order_by("user_id")


def user_of(number: str) -> ScimIdentity:
    found = users().filter(user_id=whole_number(number) or 0).first()
    if found is None:
        raise ScimError(404, f"There is no user {number[:40]}.")
    return found


def filtered(rows: QuerySet[ScimIdentity], text: str) -> QuerySet[ScimIdentity]:
    """`ATTRIBUTE eq "VALUE"`, which is what directories ask."""
    if not text:
        return rows
    attribute, _, rest = text.strip().partition(" ")
    operator, _, raw = rest.strip().partition(" ")
    columns = {
        "username": "user_name__iexact",
        "externalid": "external_id",
        "emails": "user__email__iexact",
        "emails.value": "user__email__iexact",
        "id": "user_id",
    }
    raw = raw.strip()
    column = columns.get(attribute.lower())
    if column is None or operator.lower() != "eq" or len(raw) < 2 or raw[0] != '"' or raw[-1] != '"':
        wanted = 'filters are `userName eq "..."`, also with externalId, emails.value or id'
        raise ScimError(400, f"This filter is not understood; {wanted}.", "invalidFilter")
    value = raw[1:-1].replace('\\"', '"').replace("\\\\", "\\").replace("\0", "")
    if column == "user_id":
        return rows.filter(user_id=whole_number(value) or 0)
    return rows.filter(**{column: value})


@transaction.atomic
def create(document: Mapping[str, Any]) -> ScimIdentity:
    values = parsed(document)
    _require_free(values, None)
    known = ScimIdentity.objects.select_related("user").filter(user__email=values.email).first()
    user = known.user if known else create_user_without_password(email=values.email, by=ACTOR)
    identity = known or ScimIdentity(user=user)
    identity.removed_at = None
    return _write(identity, values)


@transaction.atomic
def replace(identity: ScimIdentity, document: Mapping[str, Any]) -> ScimIdentity:
    values = parsed(document)
    _require_free(values, identity)
    return _write(identity, values)


@transaction.atomic
def patch(identity: ScimIdentity, body: Mapping[str, Any]) -> ScimIdentity:
    """add, replace and remove (RFC 7644, 3.5.2), with or without a path."""
    operations = _member(body, "Operations")
    if not isinstance(operations, list) or not operations or len(operations) > _MOST_OPERATIONS:
        raise ScimError(400, f"Operations must be a list of 1 to {_MOST_OPERATIONS}.", "invalidSyntax")
    document = resource(identity, "")
    for operation in operations:
        if not isinstance(operation, dict):
            raise ScimError(400, "An operation must be an object.", "invalidSyntax")
        _apply(document, operation)
    return replace(identity, document)


@transaction.atomic
def remove(identity: ScimIdentity) -> None:
    close_account(user=identity.user, by=ACTOR, reason="removed by the directory")
    ScimIdentity.objects.filter(pk=identity.pk).update(
        removed_at=timezone.now(),
        user_name=f"removed:{identity.user_id}",  # free for someone else
    )


def resource(identity: ScimIdentity, base: str) -> dict[str, Any]:
    user = identity.user
    document: dict[str, Any] = {
        "schemas": [USER],
        "id": str(user.pk),
        "userName": identity.user_name,
        "displayName": user.name,
        "active": user.is_active,
        "emails": [{"value": user.email}],
        "meta": {
            "resourceType": "User",
            "created": user.created_at.isoformat(),
            "lastModified": identity.changed_at.isoformat(),
            "location": f"{base}/Users/{user.pk}",
        },
    }
    if not user.name:
        del document["displayName"]
    if identity.external_id:
        document["externalId"] = identity.external_id
    return document


def parsed(document: Mapping[str, Any]) -> UserValues:
    """Raises ScimError 400 for what is missing or of another type."""
    user_name = _text(document, "userName", 254)
    if not user_name:
        raise ScimError(400, "userName is missing.", "invalidValue")
    name = _text(document, "displayName", 200) or _formatted(_member(document, "name"))
    active = _member(document, "active")
    if isinstance(active, str) and active.lower() in ("true", "false"):
        active = active.lower() == "true"  # as Microsoft Entra sends it
    if active is not None and not isinstance(active, bool):
        raise ScimError(400, "active must be true or false.", "invalidValue")
    email = _address(_member(document, "emails")) or user_name
    return UserValues(
        user_name, email.strip().lower(), name, _text(document, "externalId", 254), active is not False
    )


def _write(identity: ScimIdentity, values: UserValues) -> ScimIdentity:
    user = identity.user
    if user.email != values.email or user.name != values.name:
        _rename(user, values)
    identity.user_name, identity.external_id = values.user_name, values.external_id
    identity.changed_at = timezone.now()
    identity.save()
    if values.active != user.is_active:
        if values.active:
            reopen_account(user=user, by=ACTOR)
        else:
            close_account(user=user, by=ACTOR, reason="closed by the directory")
    return identity


def _rename(user: User, values: UserValues) -> None:
    """Another address: the person who is signed in shows again who they are."""
    if user.email != values.email:
        try:
            User(email=values.email, name=values.name).clean_fields(exclude=["password"])
        except Exception as error:
            raise ScimError(400, f"{values.email[:100]} is not an e-mail address.", "invalidValue") from error
        end_sessions(user=user, by=ACTOR)
        record_audit(project=None, actor=ACTOR, verb="user.address-changed", target=user.email)
        move_person(user.email, values.email)
        user.email, user.email_verified_at = values.email, None
    user.name = values.name
    user.save(update_fields=["email", "email_verified_at", "name"])


def _require_free(values: UserValues, own: ScimIdentity | None) -> None:
    rows = ScimIdentity.objects.filter(removed_at=None)
    if own is not None:
        rows = rows.exclude(pk=own.pk)
    taken = rows.filter(Q(user_name__iexact=values.user_name) | Q(user__email=values.email))
    others = (
        User.objects.filter(email=values.email).exclude(pk=own.user_id)
        if own is not None
        else User.objects.none()
    )
    if taken.exists() or others.exists():
        raise ScimError(409, "There is already a user of this userName or address.", "uniqueness")


def _adopt_others() -> None:
    """People who came by other ways have their address as userName."""
    missing = User.objects.filter(scim=None)
    ScimIdentity.objects.bulk_create(
        [ScimIdentity(user=user, user_name=user.email) for user in missing], ignore_conflicts=True
    )


def _member(document: Mapping[str, Any], name: str) -> Any:
    """Attribute names are the same in whatever case (RFC 7643, 2.1)."""
    return next((value for key, value in document.items() if str(key).lower() == name.lower()), None)


def _text(document: Mapping[str, Any], name: str, most: int) -> str:
    value = _member(document, name)
    if value is None:
        return ""
    if not isinstance(value, str) or len(value) > most or "\0" in value:
        raise ScimError(400, f"{name} must be text of at most {most} characters.", "invalidValue")
    return value


def _formatted(name: Any) -> str:
    if not isinstance(name, dict):
        return ""
    parts = [_text(name, "givenName", 200), _text(name, "familyName", 200)]
    return (_text(name, "formatted", 200) or " ".join(filter(None, parts)))[:200]


def _address(emails: Any) -> str:
    if emails is None:
        return ""
    if not isinstance(emails, list) or not all(isinstance(each, dict) for each in emails):
        raise ScimError(400, "emails must be a list of objects.", "invalidValue")
    ordered = sorted(emails, key=lambda each: _member(each, "primary") is not True)
    return _text(ordered[0], "value", 254) if ordered else ""


def _apply(document: dict[str, Any], operation: Mapping[str, Any]) -> None:
    kind, path = str(_member(operation, "op")).lower(), _member(operation, "path")
    value = _member(operation, "value")
    if kind not in ("add", "replace", "remove"):
        raise ScimError(400, "op must be add, replace or remove.", "invalidSyntax")
    if path is None:
        if kind == "remove" or not isinstance(value, dict):
            raise ScimError(400, "An operation without a path needs an object as value.", "noTarget")
        for name, each in value.items():
            _set(document, str(name), each)
    else:
        _set(document, str(path), None if kind == "remove" else value)


def _set(document: dict[str, Any], path: str, value: Any) -> None:
    name = path.removeprefix(f"{USER}:").strip()
    known = {
        each.lower(): each
        for each in (
            "userName",
            "displayName",
            "active",
            "emails",
            "externalId",
            "name",
            "schemas",
            "id",
            "meta",
        )
    }
    base, dot, inner = name.partition(".")
    base = base.partition("[")[0].lower()
    if base in ("id", "meta"):
        raise ScimError(400, f"{base} cannot be changed.", "mutability")
    if base == "emails" and (dot or "[" in name):  # of the only one there is
        value = (
            [{"value": value, "primary": True}]
            if inner == "value" or name.endswith(".value")
            else document["emails"]
        )
    elif base == "name":
        value = {inner: value} if dot else value
        document.pop("displayName", None)
    if base not in known:
        return  # an attribute this installation does not keep
    if value is None:
        document.pop(known[base], None)
    else:
        document[known[base]] = value
