"""Who the processes are to PostgreSQL. Importable without Django.

The application's role reads and writes rows only: it owns nothing, makes nothing, and cannot change what is
append-only. The owner's role is for `migrate`, `backup` and `restore`. The superuser of the embedded server is for its
own start alone.
"""

from collections.abc import Mapping
from typing import LiteralString

import psycopg
from psycopg import sql

SUPERUSER = "touchstone"
OWNER = "touchstone_owner"
APP = "touchstone_app"

# What the application's role may do less of than with other tables.
APPEND_ONLY = ("accounts_auditevent", "accounts_auditseal")
READ_ONLY = ("django_migrations",)

# Ends what would otherwise hold locks forever: a process that hangs in a transaction, a query no one waits for.
APP_SETTINGS = {"idle_in_transaction_session_timeout": "15min", "statement_timeout": "30min"}

# Of the role that asks: its name, and whether it is a superuser, may make roles or databases, owns the trail.
RIGHTS: LiteralString = """
    SELECT rolname, rolsuper, rolcreaterole OR rolcreatedb,
        EXISTS (SELECT FROM pg_class WHERE relowner = pg_roles.oid AND relname = ANY(%s))
    FROM pg_roles WHERE rolname = current_user
"""

_TAKES_ANALYZE = 170000  # since this version of the server the right to ANALYZE can be given
_BY_DEFAULT: LiteralString = "ALTER DEFAULT PRIVILEGES FOR ROLE {owner} IN SCHEMA public "
_LIMITS: LiteralString = "LOGIN NOSUPERUSER NOCREATEDB NOCREATEROLE NOREPLICATION NOBYPASSRLS"

_RELATIONS: LiteralString = """
    SELECT format('ALTER %%s %%I.%%I OWNER TO %%I',
        CASE relkind WHEN 'S' THEN 'SEQUENCE' WHEN 'v' THEN 'VIEW' WHEN 'm' THEN 'MATERIALIZED VIEW' ELSE 'TABLE' END,
        nspname, relname, %(owner)s::text)
    FROM pg_class JOIN pg_namespace ON pg_namespace.oid = relnamespace
    WHERE nspname = 'public' AND relkind IN ('r', 'p', 'v', 'm', 'S') AND pg_get_userbyid(relowner) = current_user
        AND NOT EXISTS (SELECT FROM pg_depend WHERE classid = 'pg_class'::regclass AND objid = pg_class.oid
            AND deptype IN ('e', 'a', 'i'))
    UNION ALL
    SELECT format('ALTER ROUTINE %%s OWNER TO %%I', pg_proc.oid::regprocedure, %(owner)s::text)
    FROM pg_proc JOIN pg_namespace ON pg_namespace.oid = pronamespace
    WHERE nspname = 'public' AND pg_get_userbyid(proowner) = current_user
        AND NOT EXISTS (SELECT FROM pg_depend WHERE classid = 'pg_proc'::regclass AND objid = pg_proc.oid
            AND deptype = 'e')
"""


def make_roles(db: psycopg.Connection, passwords: Mapping[str, str]) -> None:
    """The owner's and the application's role with these passwords. As superuser; safe to repeat."""
    there = {name for (name,) in db.execute("SELECT rolname FROM pg_roles")}
    for role, password in passwords.items():
        # Hashed here: a statement that fails is written to the server's log.
        hashed = db.pgconn.encrypt_password(password.encode(), role.encode(), b"scram-sha-256").decode()
        verb = sql.SQL("ALTER ROLE" if role in there else "CREATE ROLE")
        db.execute(
            sql.SQL("{} {} WITH {} PASSWORD {}").format(
                verb, sql.Identifier(role), sql.SQL(_LIMITS), sql.Literal(hashed)
            )
        )
    for name, value in APP_SETTINGS.items():
        db.execute(
            sql.SQL("ALTER ROLE {} SET {} = {}").format(
                sql.Identifier(APP), sql.Identifier(name), sql.Literal(value)
            )
        )


def give_database(db: psycopg.Connection, name: str) -> None:
    """Database `name` belongs to the owner; the application may enter, no one else. As superuser."""
    database, owner, app = (sql.Identifier(each) for each in (name, OWNER, APP))
    for statement in (
        sql.SQL("ALTER DATABASE {} OWNER TO {}").format(database, owner),
        sql.SQL("REVOKE ALL ON DATABASE {} FROM PUBLIC").format(database),
        sql.SQL("GRANT CONNECT, TEMPORARY ON DATABASE {} TO {}").format(database, app),
    ):
        db.execute(statement)


def give_objects(db: psycopg.Connection) -> None:
    """What the superuser owns in this database, from before there were roles, becomes the owner's. As superuser."""
    db.execute(sql.SQL("ALTER SCHEMA public OWNER TO {}").format(sql.Identifier(OWNER)))
    for (statement,) in db.execute(_RELATIONS, {"owner": OWNER}).fetchall():
        db.execute(statement)
    grant(db, app=APP, owner=OWNER)


def grant(db: psycopg.Connection, *, app: str, owner: str) -> None:
    """What the application may do in this database, now and with what `owner` makes later.

    By the owner, or the superuser. Within a transaction, so that nothing is granted for a moment only to be revoked.
    """
    rights = "SELECT, INSERT, UPDATE, DELETE"
    if db.info.server_version >= _TAKES_ANALYZE:
        rights += ", MAINTAIN"
    names = {"app": sql.Identifier(app), "owner": sql.Identifier(owner), "rights": sql.SQL(rights)}
    with db.transaction():
        for text in (
            sql.SQL("REVOKE CREATE ON SCHEMA public FROM PUBLIC"),
            sql.SQL("REVOKE CREATE ON SCHEMA public FROM {app}"),
            sql.SQL("GRANT USAGE ON SCHEMA public TO {app}"),
            sql.SQL("GRANT {rights} ON ALL TABLES IN SCHEMA public TO {app}"),
            sql.SQL("REVOKE TRUNCATE, REFERENCES, TRIGGER ON ALL TABLES IN SCHEMA public FROM {app}"),
            sql.SQL("GRANT USAGE, SELECT ON ALL SEQUENCES IN SCHEMA public TO {app}"),
            sql.SQL(_BY_DEFAULT + "GRANT {rights} ON TABLES TO {app}"),
            sql.SQL(_BY_DEFAULT + "GRANT USAGE, SELECT ON SEQUENCES TO {app}"),
        ):
            db.execute(text.format(**names))
        _protect(db, app)


def _protect(db: psycopg.Connection, app: str) -> None:
    for tables, kept in ((APPEND_ONLY, "SELECT, INSERT"), (READ_ONLY, "SELECT")):
        for table in tables:
            if db.execute("SELECT to_regclass(%s)", [f"public.{table}"]).fetchone() == (None,):
                continue  # it comes with a later migration, after which this is done again
            names = {"table": sql.Identifier(table), "app": sql.Identifier(app), "kept": sql.SQL(kept)}
            db.execute(sql.SQL("REVOKE ALL ON {table} FROM {app}").format(**names))
            db.execute(sql.SQL("GRANT {kept} ON {table} TO {app}").format(**names))
