"""A real PostgreSQL that takes no changes, as a standby after a failover, for as long as a block runs."""

from collections.abc import Iterator
from contextlib import contextmanager

import psycopg
from django.db import connection
from psycopg import sql


@contextmanager
def read_only_database() -> Iterator[None]:
    """Sessions that are opened from now on are read-only, all the old ones are gone; afterwards the new ones stay
    read-only, as after a failover: whoever goes on has to open another."""
    connection.close()
    _set_read_only(True)
    try:
        yield
    except BaseException:  # a test that fails here is cleaned up after all the same
        _set_read_only(False)
        connection.close()
        raise
    _set_read_only(False)


def _set_read_only(on: bool) -> None:
    known = connection.get_connection_params()
    params = {name: known[name] for name in ("dbname", "user", "password", "host", "port") if name in known}
    params |= {"options": "-c default_transaction_read_only=off"}
    with psycopg.connect(**params, autocommit=True) as db:
        # Of its own role, in this database: the application's role owns none.
        setting = "SET default_transaction_read_only = on" if on else "RESET default_transaction_read_only"
        where = sql.SQL("ALTER ROLE CURRENT_USER IN DATABASE {} ").format(sql.Identifier(params["dbname"]))
        db.execute(where + sql.SQL(setting))
        if on:
            db.execute(
                "SELECT pg_terminate_backend(pid) FROM pg_stat_activity "
                "WHERE datname = current_database() AND pid <> pg_backend_pid() AND backend_type = 'client backend'"
            )
