import psycopg
from django.db import connection

from apps.core.database import database_url


def test_a_connection_that_goes_silent_is_given_up() -> None:
    options = database_url.parse("postgresql://u@db.example:5432/touchstone")["OPTIONS"]
    assert options["tcp_user_timeout"] == 30_000 and options["connect_timeout"] == 10


def test_the_url_overrules() -> None:
    url = "postgresql://u@db.example:5432/touchstone?tcp_user_timeout=5000&sslmode=require"
    options = database_url.parse(url)["OPTIONS"]
    assert int(options["tcp_user_timeout"]) == 5000 and options["sslmode"] == "require"
    assert options["keepalives_idle"] == 30


def test_the_settings_say_so(db: None) -> None:
    connection.ensure_connection()
    told = psycopg.conninfo.conninfo_to_dict(connection.connection.info.dsn)
    assert told["tcp_user_timeout"] == "30000" and told["keepalives_idle"] == "30"
