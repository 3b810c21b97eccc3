"""Telling a database that is away for the moment from a bug."""

import psycopg
from django.db import InterfaceError, OperationalError
from psycopg.errors import DiskFull, QueryCanceled, UndefinedTable
from psycopg_pool import PoolTimeout

_AWAY = "The database cannot be reached right now. Nothing was changed; try again in a moment."
_FULL = "The disk of the database is full. Nothing was changed; try again when whoever runs this server has made room."
RETRY_AFTER = "3"  # seconds


# Django translates what its own cursors raise; COPY is psycopg's alone.
_AWAY_ERRORS = (
    OperationalError,
    InterfaceError,
    psycopg.OperationalError,
    psycopg.InterfaceError,
    PoolTimeout,
)
_NONE = (QueryCanceled, UndefinedTable)


def in_words(error: BaseException) -> str:
    return _FULL if DiskFull in (type(error), type(error.__cause__)) else _AWAY


def is_outage(error: BaseException) -> bool:
    """Whether `error` means that the same request may well succeed a little later."""
    if isinstance(error, _NONE) or isinstance(error.__cause__, _NONE):
        return False
    return isinstance(error, _AWAY_ERRORS)


def outage_behind(error: BaseException) -> BaseException | None:
    """The outage that was met before `error` was raised in its place."""
    behind = error.__context__
    while behind is not None and not is_outage(behind):
        behind = behind.__context__
    return behind
