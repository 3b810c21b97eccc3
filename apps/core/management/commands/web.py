from typing import Any

from django.conf import settings
from django.core.management.base import CommandParser

from apps.core.commands import TouchstoneCommand
from apps.core.http.server import serve
from apps.core.processes.heartbeats import record_heartbeats


class Command(TouchstoneCommand):
    help = "Serve the pages and the JSON API, and pass reward calls on to `rewards`."
    store_access = "read"
    requires_system_checks = "__all__"

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("--host", default="127.0.0.1")
        parser.add_argument("--port", type=int, default=8000)

    def run(self, *, host: str, port: int) -> dict[str, Any]:
        # Each request runs in a thread of its own, so here, and only here, connections are worth keeping.
        settings.DATABASES["default"].setdefault("OPTIONS", {})["pool"] = {
            "min_size": 0,
            "max_size": settings.DB_POOL,
            "timeout": 10,
        }
        with record_heartbeats("web"):
            serve("apps.config.asgi:application", host=host, port=port)
        return {}
