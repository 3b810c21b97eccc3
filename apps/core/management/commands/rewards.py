from typing import Any

from django.conf import settings
from django.core.management.base import CommandParser

from apps.core.commands import TouchstoneCommand
from apps.core.http.server import serve
from apps.core.processes.device_check import require_device
from apps.core.processes.heartbeats import record_heartbeats


class Command(TouchstoneCommand):
    help = "Load what is deployed and answer the reward API."
    store_access = "read"

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("--host", default="127.0.0.1")
        parser.add_argument("--port", type=int, default=8001)

    def run(self, *, host: str, port: int) -> dict[str, Any]:
        require_device("TOUCHSTONE_REWARDS_DEVICE", settings.REWARDS_DEVICE)
        with record_heartbeats("rewards"):
            serve("apps.rewards.serving.app:application", host=host, port=port)
        return {}
