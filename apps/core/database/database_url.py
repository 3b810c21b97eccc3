"""DATABASE_URL as Django takes it. Apart, because the settings are made of it."""

from typing import Any

import dj_database_url

# A network that swallows packets tells no one: without these a query waits for minutes, an idle connection for hours.
# https://www.postgresql.org/docs/current/libpq-connect.html; a query string in the URL overrules them.
_PATIENCE = {
    "connect_timeout": 10,
    "keepalives_idle": 30,
    "keepalives_interval": 5,
    "keepalives_count": 4,
    "tcp_user_timeout": 30_000,
}


def parse(url: str) -> dict[str, Any]:
    settings: dict[str, Any] = {**dj_database_url.parse(url, conn_max_age=0)}
    settings["OPTIONS"] = _PATIENCE | settings.get("OPTIONS", {})
    return settings
