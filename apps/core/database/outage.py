"""Telling a database that is away for the moment, or takes no changes, from a bug."""

import logging
from collections.abc import Iterator

import psycopg
from django.db import InterfaceError, OperationalError, connection
from psycopg_pool import PoolTimeout

log = logging.getLogger(__name__)

_AWAY = "The database cannot be reached right now. Nothing was changed; try again in a moment."
_FULL = "The disk of the database is full. Nothing was changed; try again when your administrator has freed space."
_READ_ONLY = (
    "The database takes no changes right now. Nothing was changed, and what is stored can be read; try again in a "
    "moment."
)
_BUSY = "The database has too much to do right now. Nothing was changed; try again in a moment."
_LONG = "The database took too long for this and stopped. Nothing was changed; try again, or ask for less at a time."
_AT_ONCE = "Someone else changed the same thing at the same moment. Nothing was changed; send it again."
RETRY_AFTER = "3"  # seconds

_READ_ONLY_STATE = "25006"
# By SQLSTATE (PostgreSQL's appendix A). What is not here is told by its class: OperationalError and the like.
_SENTENCES = {
    _READ_ONLY_STATE: _READ_ONLY,  # default_transaction_read_only, or a standby after a failover
    "25P03": _LONG,  # idle_in_transaction_session_timeout
    "25P04": _LONG,  # transaction_timeout
    "40001": _AT_ONCE,  # serialization failure
    "40P01": _AT_ONCE,  # deadlock
    "53100": _FULL,
    "53200": _BUSY,  # out of memory
    "53300": _BUSY,  # too many connections
    "53400": _BUSY,
    "55P03": _BUSY,  # lock_timeout
}
# statement_timeout: the same again would take as long, so no job is tried again for it.
_TOO_LONG_STATE = "57014"
_UNDEFINED_TABLE_STATE = "42P01"
_MOST_CAUSES = 10

# Django translates what its own cursors raise; COPY is psycopg's alone.
_AWAY_ERRORS = (
    OperationalError,
    InterfaceError,
    psycopg.OperationalError,
    psycopg.InterfaceError,
    PoolTimeout,
)


def in_words(error: BaseException) -> str:
    return _SENTENCES.get(_state_of(error), _LONG if is_too_long(error) else _AWAY)


def is_outage(error: BaseException) -> bool:
    """Whether `error` means that the same may well succeed a little later."""
    state = _state_of(error)
    if state in (_TOO_LONG_STATE, _UNDEFINED_TABLE_STATE):
        return False
    return state in _SENTENCES or isinstance(error, _AWAY_ERRORS)


def is_too_long(error: BaseException) -> bool:
    """Whether the database gave a statement up: for who asked it is 503, for a job it is no reason to go on."""
    return _state_of(error) == _TOO_LONG_STATE


def is_read_only(error: BaseException) -> bool:
    return _state_of(error) == _READ_ONLY_STATE


def outage_behind(error: BaseException) -> BaseException | None:
    """The outage that was met before `error` was raised in its place."""
    return next((each for each in _contexts(error) if is_outage(each)), None)


def met_outage(error: BaseException) -> BaseException | None:
    """What to answer 503 for: `error` itself, or the outage in whose place it was raised. None for a bug."""
    if is_outage(error) or is_too_long(error):
        return error
    return outage_behind(error)


def renew_connections(error: BaseException | None = None) -> None:
    """After a refused change: let no session go on that was opened while the database took none.

    A session keeps what it was opened with, and after a failover it may still be one of the old server. Called from
    any thread: those of a pool are closed as they come back to it.
    """
    if error is not None and not is_read_only(error):
        return
    if connection.in_atomic_block:  # someone else's, who will see it fail
        return
    if pool := getattr(connection, "pool", None):
        pool.drain()
    connection.close()


def _state_of(error: BaseException) -> str:
    """The SQLSTATE, through Django's and SQLAlchemy's wrapping; "" without one."""
    for each in (error, error.__cause__, getattr(error, "orig", None)):
        if state := getattr(each, "sqlstate", None):
            return str(state)
    return ""


def _contexts(error: BaseException) -> Iterator[BaseException]:
    behind = error.__cause__ or error.__context__
    for _ in range(_MOST_CAUSES):
        if behind is None:
            return
        yield behind
        behind = behind.__cause__ or behind.__context__
