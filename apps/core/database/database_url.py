"""DATABASE_URL as Django takes it. Apart, because the settings are made of it."""

from typing import Any

import dj_database_url
from django.core.exceptions import ImproperlyConfigured

from apps.core.environment import without_password

# A network that swallows packets tells no one: without these a query waits for minutes, an idle connection for hours.
# https://www.postgresql.org/docs/current/libpq-connect.html; a query string in the URL overrules them.
_PATIENCE = {
    "connect_timeout": 10,
    "keepalives_idle": 30,
    "keepalives_interval": 5,
    "keepalives_count": 4,
    "tcp_user_timeout": 30_000,
}


def parse(url: str, variable: str = "DATABASE_URL") -> dict[str, Any]:
    """Raises ImproperlyConfigured for what is not the address of a PostgreSQL database; it may hold a password, which
    is not repeated."""
    try:
        settings: dict[str, Any] = {**dj_database_url.parse(url, conn_max_age=0)}
    except ValueError:
        settings = {}
    if settings.get("ENGINE") != "django.db.backends.postgresql" or not settings.get("NAME"):
        raise ImproperlyConfigured(
            f"{variable} must name a PostgreSQL database: postgresql://user:password@host:port/name; it is "
            f"{without_password(url)!r}."
        )
    settings["OPTIONS"] = _PATIENCE | settings.get("OPTIONS", {})
    return settings
