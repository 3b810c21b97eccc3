"""Who is meant in the audit trail. The trail holds pseudonyms; a table that can be emptied says whom they mean."""

import secrets
from collections.abc import Callable, Iterable
from datetime import timedelta
from typing import Any

from django.conf import settings
from django.utils import timezone

from apps.accounts.audit_hash import storable
from apps.accounts.audit_models import AuditAlias

FORGOTTEN = "a deleted person"
_AROUND = "\"'()<>[]{},;:."


def person_pseudonym(address: str) -> str:
    return _pseudonym(AuditAlias.Kind.PERSON, address.strip().lower(), "")


def network_pseudonym(network: str, *, of_person: str = "") -> str:
    """of_person: the pseudonym with which it is forgotten."""
    return _pseudonym(AuditAlias.Kind.NETWORK, network, of_person)


def pseudonymous(value: Any, pseudonym: Callable[[str], str] = person_pseudonym) -> Any:
    """The same without e-mail addresses, as it can be stored. value: JSON. pseudonym: of an address."""
    if isinstance(value, dict):
        return {pseudonymous(name, pseudonym): pseudonymous(each, pseudonym) for name, each in value.items()}
    if isinstance(value, list | tuple):
        return [pseudonymous(each, pseudonym) for each in value]
    if isinstance(value, str) and "@" in value:
        return storable(" ".join(_pseudonymous_word(word, pseudonym) for word in value.split(" ")))
    return storable(value)


def named(value: Any, meanings: dict[str, str]) -> Any:
    """The same with whom the pseudonyms mean."""
    if isinstance(value, dict):
        return {named(name, meanings): named(each, meanings) for name, each in value.items()}
    if isinstance(value, list):
        return [named(each, meanings) for each in value]
    if not isinstance(value, str) or not any(f"{kind}-" in value for kind in AuditAlias.Kind.values):
        return value
    return " ".join(meanings.get(word.strip(_AROUND), word) for word in value.split(" "))


def meanings_in(values: Iterable[Any]) -> dict[str, str]:
    """Whom the pseudonyms in `values` mean, as far as it is known; FORGOTTEN where a person was deleted."""
    found: set[str] = set()
    for value in values:
        _collect(value, found)
    known = dict(AuditAlias.objects.filter(pseudonym__in=found).values_list("pseudonym", "value"))
    return {each: known.get(each) or _forgotten(each) for each in found}


def forget_person(address: str) -> str:
    """From now on no one knows whom the pseudonym meant, nor where they came from; the pseudonym, or nothing."""
    alias = AuditAlias.objects.filter(kind=AuditAlias.Kind.PERSON, value=address.strip().lower()).first()
    if alias is None:
        return ""
    AuditAlias.objects.filter(belongs_to=alias.pseudonym).delete()
    alias.delete()
    return alias.pseudonym


def move_person(before: str, after: str) -> None:
    """The same person has another address; what they did under both is forgotten together."""
    rows = AuditAlias.objects.filter(kind=AuditAlias.Kind.PERSON)
    old, new = rows.filter(value=before.lower()).first(), rows.filter(value=after.lower()).first()
    if old is None:
        return
    if new is None:
        AuditAlias.objects.filter(pk=old.pk).update(value=after.lower())
    else:  # the address was in the trail before, of an invitation perhaps
        AuditAlias.objects.filter(belongs_to=old.pseudonym).delete()
        old.delete()


def forget_networks() -> int:
    """Where people came from a while ago; how many networks."""
    since = timezone.now() - timedelta(days=settings.AUDIT_NETWORK_DAYS)
    return AuditAlias.objects.filter(kind=AuditAlias.Kind.NETWORK, created_at__lt=since).delete()[0]


def _pseudonym(kind: AuditAlias.Kind, value: str, belongs_to: str) -> str:
    alias, _ = AuditAlias.objects.get_or_create(
        kind=kind,
        value=value[:254],
        belongs_to=belongs_to,
        defaults={"pseudonym": f"{kind}-{secrets.token_hex(6)}"},
    )
    return alias.pseudonym


def _pseudonymous_word(word: str, pseudonym: Callable[[str], str]) -> str:
    bare = word.strip(_AROUND)
    if not looks_like_address(bare):
        return word
    before, _, after = word.partition(bare)
    return f"{before}{pseudonym(bare)}{after}"


def looks_like_address(word: str) -> bool:
    """Whether a person may be behind it; `project/name@3` and `user@1.2` are names of things."""
    local, _, domain = word.rpartition("@")
    last = domain.rpartition(".")[2]
    return bool(local) and "/" not in word and len(word) <= 254 and last.isalpha() and len(last) >= 2


def _collect(value: Any, found: set[str]) -> None:
    if isinstance(value, dict):
        for name, each in value.items():
            _collect(name, found)
            _collect(each, found)
    elif isinstance(value, list):
        for each in value:
            _collect(each, found)
    elif isinstance(value, str) and "-" in value:
        words = (word.strip(_AROUND) for word in value.split(" "))
        found.update(word for word in words if _is_pseudonym(word))


def _is_pseudonym(word: str) -> bool:
    kind, _, number = word.partition("-")
    return kind in AuditAlias.Kind.values and len(number) == 12 and set(number) <= set("0123456789abcdef")


def _forgotten(pseudonym: str) -> str:
    is_person = pseudonym.startswith(f"{AuditAlias.Kind.PERSON}-")
    return f"{FORGOTTEN} ({pseudonym})" if is_person else pseudonym
