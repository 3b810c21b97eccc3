"""Secrets of people's other accounts, kept so that a copy of the database alone does not tell them.

They are encrypted with a key made of the installation's own (TOUCHSTONE_SECRET_KEY, or the one in its home folder), by
Fernet (AES-128-CBC with HMAC-SHA256). Who changes that key has to enter them again, and so has the person who restores
a backup that did not carry them.

An app registers the fields that it keeps so (AppConfig.register); a backup carries what is registered and nothing else:

    encryption.register(EncryptedField("llm.LLMConnection", "key", lambda row: f"the key of {row}"))
"""

import base64
import hashlib
import hmac
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from typing import Any

from cryptography.fernet import Fernet, InvalidToken
from django.apps import apps
from django.conf import settings

from apps.core.errors import DomainError
from apps.core.registries import Registry

LOST = "lost"  # in the place of a secret that did not come along; no token of Fernet's looks so
_PURPOSE = b"apps.core.encryption.v1"


@dataclass(frozen=True, slots=True)
class EncryptedField:
    """model: as `app.Model`. keys: where the field is a JSON object, those of it that are encrypted: a text, or an
    array of texts. name: the secret of a row in words, without the secret. former_models: names that the model had, by
    which older backups carry its secrets."""

    model: str
    field: str
    name: Callable[[Any], str]
    keys: tuple[str, ...] = ()
    former_models: tuple[str, ...] = ()


@dataclass(eq=False, slots=True)
class StoredSecret:
    """One secret as it is kept. place: within the row; of no meaning but that it finds it again."""

    of: EncryptedField
    row: Any
    place: tuple[str | int, ...]
    token: str

    @property
    def name(self) -> str:
        return self.of.name(self.row)

    def replace(self, token: str) -> None:
        """Raises nothing where another process changed the row: the newer secret is its own."""
        if not self.place:
            setattr(self.row, self.of.field, token)
        else:
            within = getattr(self.row, self.of.field)
            for each in self.place[:-1]:
                within = within[each]
            within[self.place[-1]] = token
        self.row.save(update_fields=[self.of.field])


_restoring: ContextVar[bool] = ContextVar("restoring", default=False)
_FIELDS: Registry[EncryptedField] = Registry()


def register(field: EncryptedField) -> None:
    _FIELDS.add(field)


def kept_secrets() -> Iterator[StoredSecret]:
    """All there are, of every field that is registered."""
    for field in _FIELDS:
        rows = apps.get_model(field.model)._default_manager.exclude(**{field.field: ""}).order_by("pk")
        for row in rows.iterator():
            for place, token in _tokens(field, getattr(row, field.field)):
                yield StoredSecret(field, row, place, token)


@contextmanager
def restoring() -> Iterator[None]:
    """A backup that another installation may have made is brought up to this version."""
    token = _restoring.set(True)
    try:
        yield
    finally:
        _restoring.reset(token)


def is_restoring() -> bool:
    """For migrations that make secrets of the installation's key: it may be another than made those."""
    return _restoring.get()


def _tokens(field: EncryptedField, value: Any) -> Iterator[tuple[tuple[str | int, ...], str]]:
    if not field.keys:
        yield (), value
        return
    for key in field.keys:
        found = value.get(key) if isinstance(value, dict) else None
        if isinstance(found, str) and found:
            yield (key,), found
        elif isinstance(found, list):
            yield from (((key, index), each) for index, each in enumerate(found) if isinstance(each, str))


def encrypted(secret: str) -> str:
    return _fernet().encrypt(secret.encode()).decode() if secret else ""


def decrypted(kept: str) -> str:
    """Raises DomainError where it cannot be read here."""
    if not kept:
        return ""
    if kept == LOST:
        raise DomainError(
            "A secret that was kept did not come along with the backup that this installation was restored from. "
            "Enter it again."
        )
    try:
        return _fernet().decrypt(kept.encode()).decode()
    except InvalidToken:
        raise DomainError(
            "A secret that was kept cannot be read any more, because this installation's key was changed. "
            "Enter it again."
        ) from None


def is_readable(kept: str) -> bool:
    """Whether `decrypted` has it."""
    try:
        decrypted(kept)
    except DomainError:
        return False
    return True


def _fernet() -> Fernet:
    key = hmac.digest(str(settings.SECRET_KEY).encode(), _PURPOSE, hashlib.sha256)
    return Fernet(base64.urlsafe_b64encode(key))
