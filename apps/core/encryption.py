"""Secrets of people's other accounts, kept so that a copy of the database alone does not tell them.

They are encrypted with a key made of the installation's own (TOUCHSTONE_SECRET_KEY, or the one in its home folder), by
Fernet (AES-128-CBC with HMAC-SHA256). Who changes that key has to enter them again.
"""

import base64
import hashlib
import hmac

from cryptography.fernet import Fernet, InvalidToken
from django.conf import settings

from apps.core.errors import DomainError

_PURPOSE = b"apps.core.encryption.v1"


def encrypted(secret: str) -> str:
    return _fernet().encrypt(secret.encode()).decode() if secret else ""


def decrypted(kept: str) -> str:
    """Raises DomainError where the installation's key is another than it was."""
    if not kept:
        return ""
    try:
        return _fernet().decrypt(kept.encode()).decode()
    except InvalidToken:
        raise DomainError(
            "A secret that was kept cannot be read any more, because this installation's key was changed. "
            "Enter it again."
        ) from None


def _fernet() -> Fernet:
    key = hmac.digest(str(settings.SECRET_KEY).encode(), _PURPOSE, hashlib.sha256)
    return Fernet(base64.urlsafe_b64encode(key))
