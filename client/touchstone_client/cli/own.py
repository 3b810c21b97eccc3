"""The commands of the client: they work from anywhere, against a server over its API."""

from touchstone_client.cli.command import Command
from touchstone_client.cli.commands import account, exports, imports, lists, scoring, serving, training

COMMANDS: dict[str, Command] = {
    command.name: command
    for module in (account, imports, exports, training, serving, scoring, lists)
    for command in module.COMMANDS
}
