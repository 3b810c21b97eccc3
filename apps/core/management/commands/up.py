import sys
from typing import Any

from django.core.management.base import CommandParser

from apps.core.commands import TouchstoneCommand
from apps.core.processes import start_notices, supervisor


class Command(TouchstoneCommand):
    help = "Run everything on this machine: database, web, workers, rewards, beat. Ctrl-C stops all of it."
    needs_database = False

    def add_arguments(self, parser: CommandParser) -> None:
        add_address_arguments(parser)

    def run(self, *, host: str, port: int, rewards_port: int) -> dict[str, Any]:
        out, result = sys.stderr if self.as_json else sys.stdout, {}
        try:
            with supervisor.running(host=host, port=port, rewards_port=rewards_port, out=out) as stack:
                result["url"] = stack.url
                self.say(f"\nTouchstone is up at {stack.url}  (Ctrl-C stops it)\n")
                for line in start_notices.start_lines(stack.url):
                    self.say(f"{line}\n")
                stack.wait()
        except KeyboardInterrupt:
            self.say("stopped")
        return result


def add_address_arguments(parser: CommandParser) -> None:
    parser.add_argument("--host", default="127.0.0.1", help="address the pages are served at")
    parser.add_argument("--port", type=int, default=8000)
    parser.add_argument("--rewards-port", type=int, default=8001)
