"""Secrets that are kept encrypted, on their way from one installation to another by a backup."""

from collections.abc import Iterable, Mapping
from typing import Any

from django.db import transaction

from apps.core.storage.encryption import LOST, StoredSecret, decrypted, encrypted, is_readable, kept_secrets


def read() -> tuple[list[dict[str, Any]], list[str]]:
    """Every one that is readable here, to be written to an encrypted file only; and the names of the others."""
    carried, unreadable = [], []
    for kept in kept_secrets():
        if is_readable(kept.token):
            carried.append({**_where(kept), "name": kept.name, "secret": decrypted(kept.token)})
        else:
            unreadable.append(kept.name)
    return carried, unreadable


@transaction.atomic
def write(secrets: Iterable[Mapping[str, Any]]) -> tuple[int, list[str]]:
    """Keep them under the key of this installation. How many; and the names of those that have to be entered again,
    which say so from now on where they are needed."""
    known = {_key(each): str(each["secret"]) for each in secrets}
    carried, again = 0, []
    for kept in kept_secrets():
        where = _where(kept)
        names = (kept.of.model, *kept.of.former_models)
        secret = next(
            (known[key] for key in (_key(where | {"model": name}) for name in names) if key in known), None
        )
        if secret is not None:
            kept.replace(encrypted(secret))
            carried += 1
        elif not is_readable(kept.token):
            kept.replace(LOST)
            again.append(kept.name)
    return carried, sorted(again)


def _where(kept: StoredSecret) -> dict[str, Any]:
    return {
        "model": kept.of.model, "field": kept.of.field, "row": str(kept.row.pk), "place": list(kept.place),
    }  # fmt: skip


def _key(where: Mapping[str, Any]) -> tuple[Any, ...]:
    return (where["model"], where["field"], where["row"], *where["place"])
