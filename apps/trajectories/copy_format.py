"""Rows in the binary format of PostgreSQL's COPY, encoded before the database is asked, in whatever process.

A row is two bytes for the number of its fields, then each field: four bytes for its length and the value in the binary
form of its type; all numbers are big-endian (PostgreSQL's documentation of COPY, "Binary Format").
"""

from collections.abc import Iterable
from struct import Struct
from typing import Any

from django.db import connection, models

HEADER, TRAILER = b"PGCOPY\n\xff\r\n\0" + bytes(8), b"\xff\xff"
NULL = b"\xff\xff\xff\xff"
_length = Struct(">i").pack
_integer = Struct(">ii").pack
_float = Struct(">id").pack
_key = Struct(">hiq").pack


def bytes_field(value: bytes) -> bytes:
    """Of a type whose binary form is its bytes: text, json, bytea, tsvector."""
    return _length(len(value)) + value


def text_field(value: str | None) -> bytes:
    return NULL if value is None else bytes_field(value.encode())


def integer_field(value: int | None) -> bytes:
    return NULL if value is None else _integer(4, value)


def float_field(value: float | None) -> bytes:
    """Of double precision."""
    return NULL if value is None else _float(8, value)


def row_start(key: int, fields: int) -> bytes:
    """Of a row whose first field is a bigint. fields: all of them, the first included."""
    return _key(fields, 8, key)


def copy_rows(model: type[models.Model], columns: str, rows: Iterable[bytes]) -> None:
    """rows: each or several together, whole."""
    data = b"".join((HEADER, *rows, TRAILER))
    _copy(model, columns, "(FORMAT BINARY)", lambda copy: copy.write(data))


def copy_values(model: type[models.Model], columns: str, rows: Iterable[tuple[Any, ...]]) -> None:
    """rows: values, which psycopg adapts."""

    def write(copy: Any) -> None:
        for row in rows:
            copy.write_row(row)

    _copy(model, columns, "", write)


def _copy(model: type[models.Model], columns: str, options: str, write: Any) -> None:
    statement = f"COPY {model._meta.db_table} ({columns}) FROM STDIN {options}"
    with connection.cursor() as cursor, cursor.copy(statement) as copy:
        write(copy)
