"""A file encrypted under a passphrase, written and read as a stream: what is read is what was written, or an error.

The key comes from the passphrase by scrypt (RFC 7914). The contents are cut into chunks, each sealed by AES-256-GCM
with a nonce of a random prefix, the chunk's number and whether it is the last: the STREAM construction of Hoang,
Reyhanitabar, Rogaway and Vizar, "Online Authenticated-Encryption and its Nonce-Reuse Misuse-Resistance" (CRYPTO 2015),
as age and Tink use it. So a chunk that is changed, moved, left out, repeated or taken from another file is found out,
and so is a file that ends early or goes on. The head is authenticated by a second key, which tells another passphrase
from damage.

    magic (19) | log2 of scrypt's N (1) | salt (16) | nonce prefix (7) | HMAC-SHA256 of these (32) | chunks
"""

import hashlib
import hmac
import io
import secrets
import struct
from typing import IO

from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.ciphers.aead import AESGCM
from cryptography.hazmat.primitives.kdf.scrypt import Scrypt

from apps.core.errors import DomainError

MAGIC = b"touchstone-sealed-1"
CHUNK = 2**20  # bytes of contents
FEWEST_CHARACTERS = 12  # of a passphrase
_TAG = 16
_COST = 17  # 128 MB and half a second
_COSTS = range(15, 19)  # that are read: the head is not to be trusted with more memory before it is checked
_PREFIX = 7
_HEAD = len(MAGIC) + 1 + 16 + _PREFIX + 32


class WrongPassphrase(DomainError):
    pass


class Damaged(DomainError):
    pass


def is_sealed(file: IO[bytes]) -> bool:
    """Whether it begins as one; it is left where it was."""
    start = file.read(len(MAGIC))
    file.seek(-len(start), io.SEEK_CUR)
    return start == MAGIC


class SealedWriter:
    """Takes contents; `close` writes the last chunk, without which the file is no whole one."""

    def __init__(self, file: IO[bytes], passphrase: str, *, cost: int = _COST) -> None:
        if len(passphrase) < FEWEST_CHARACTERS:
            raise DomainError(
                f"A passphrase has at least {FEWEST_CHARACTERS} characters; anyone who has the file can try as many "
                "as they like."
            )
        self._file = file
        salt, prefix = secrets.token_bytes(16), secrets.token_bytes(_PREFIX)
        start = MAGIC + bytes([cost]) + salt + prefix
        self._chunks = _Chunks(start, passphrase)
        self._waiting = bytearray()
        file.write(start + self._chunks.mac)

    def write(self, data: bytes) -> int:
        self._waiting += data
        while len(self._waiting) > CHUNK:  # one that is exactly full may be the last
            self._file.write(self._chunks.seal(bytes(self._waiting[:CHUNK]), is_last=False))
            del self._waiting[:CHUNK]
        return len(data)

    def flush(self) -> None:
        """What does not fill a chunk waits for the rest."""

    def close(self) -> None:
        self._file.write(self._chunks.seal(bytes(self._waiting), is_last=True))
        self._waiting.clear()


class SealedReader(io.RawIOBase):
    """Gives contents that were checked, and the last of them only where the file ends with it."""

    def __init__(self, file: IO[bytes], passphrase: str) -> None:
        super().__init__()
        self._file = file
        head = file.read(_HEAD)
        if len(head) < _HEAD or head[len(MAGIC)] not in _COSTS:
            raise Damaged("its head is damaged")
        self._chunks = _Chunks(head[:-32], passphrase)
        if not hmac.compare_digest(self._chunks.mac, head[-32:]):
            raise WrongPassphrase(
                "the passphrase is not the one it was created with, or its first bytes are damaged"
            )
        self._next = file.read(CHUNK + _TAG)
        self._open = memoryview(b"")
        self._is_over = False

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: "memoryview[int]") -> int:  # type: ignore[override]
        while not self._open and not self._is_over:
            self._open_next()
        count = min(len(buffer), len(self._open))
        buffer[:count] = self._open[:count]
        self._open = self._open[count:]
        return count

    def _open_next(self) -> None:
        chunk, self._next = self._next, self._file.read(CHUNK + _TAG)
        self._is_over = not self._next
        self._open = memoryview(self._chunks.open(chunk, is_last=self._is_over))


class _Chunks:
    """Seals or opens one after the other. mac: of the head."""

    def __init__(self, start: bytes, passphrase: str) -> None:
        cost, salt = start[len(MAGIC)], start[len(MAGIC) + 1 : -_PREFIX]
        keys = Scrypt(salt=salt, length=64, n=2**cost, r=8, p=1).derive(passphrase.encode())
        self.mac = hmac.digest(keys[32:], start, hashlib.sha256)
        self._cipher, self._prefix, self._number = AESGCM(keys[:32]), start[-_PREFIX:], 0

    def seal(self, contents: bytes, *, is_last: bool) -> bytes:
        return self._cipher.encrypt(self._nonce(is_last), contents, None)

    def open(self, chunk: bytes, *, is_last: bool) -> bytes:
        try:
            return self._cipher.decrypt(self._nonce(is_last), chunk, None)
        except InvalidTag:
            raise Damaged(f"part {self._number:,} of it was changed, is missing, or is cut off") from None

    def _nonce(self, is_last: bool) -> bytes:
        nonce = self._prefix + struct.pack(">IB", self._number, is_last)  # over 4 PB there is no number left
        self._number += 1
        return nonce
