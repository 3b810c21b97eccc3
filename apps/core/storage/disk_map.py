"""A map of texts that stays small in memory, however many keys it gets."""

import sqlite3
from typing import Generic, TypeVar, cast

Value = TypeVar("Value", str, int)
_IN_MEMORY = 20_000  # keys before they go to a temporary file
_BYTES_CACHED = 8 * 2**20
_TABLE = "CREATE TABLE pairs (key TEXT PRIMARY KEY, value) WITHOUT ROWID"
_SET = "INSERT INTO pairs VALUES (?, ?) ON CONFLICT (key) DO UPDATE SET value = excluded.value"


class DiskMap(Generic[Value]):
    """Like a dictionary; beyond so many keys an SQLite database in a temporary file, which ends with the process."""

    def __init__(self, in_memory: int = _IN_MEMORY) -> None:
        self._values: dict[str, Value] = {}
        self._in_memory = in_memory
        self._database: sqlite3.Connection | None = None

    def get(self, key: str) -> Value | None:
        found = self._values.get(key)
        if found is not None or self._database is None:
            return found
        row = self._database.execute("SELECT value FROM pairs WHERE key = ?", [_stored(key)]).fetchone()
        return None if row is None else cast(Value, row[0])

    def __setitem__(self, key: str, value: Value) -> None:
        self._values[key] = value
        if len(self._values) > self._in_memory:
            self._spill()

    def _spill(self) -> None:
        if self._database is None:
            # Without a name it is a private file that is deleted when it is closed. One thread at a time uses it.
            self._database = sqlite3.connect("", check_same_thread=False, isolation_level=None)
            self._database.execute("PRAGMA journal_mode = OFF")
            self._database.execute(f"PRAGMA cache_size = -{_BYTES_CACHED // 1024}")
            self._database.execute(_TABLE)
        pairs = sorted((_stored(key), value) for key, value in self._values.items())
        self._database.execute("BEGIN")
        self._database.executemany(_SET, pairs)
        self._database.execute("COMMIT")
        self._values.clear()


def _stored(key: str) -> str:
    """SQLite's texts are UTF-8 and end at a NUL."""
    return key.encode("utf-8", "backslashreplace").decode().replace("\0", "\\0")
