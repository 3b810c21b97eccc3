from typing import Any

from django.core.management.base import CommandParser
from django.db.models import Q

from apps.core.commands import TouchstoneCommand
from apps.core.errors import DomainError
from apps.machines.models import JoinToken, Machine
from apps.machines.services import revoke_join_token, revoke_machine


class Command(TouchstoneCommand):
    help = "Revoke a joined machine, or a join token that was not used."

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("machine", help="its name, or the first characters of its key or of the token")

    def run(self, *, machine: str) -> dict[str, Any]:
        token = JoinToken.objects.filter(prefix=machine).first()
        if token is not None:
            revoke_join_token(token=token, by=None)
            self.say(f"The join token {token.prefix} is revoked.")
            return {"revoked": token.prefix}
        found = list(Machine.objects.filter(Q(name=machine) | Q(prefix=machine), revoked_at=None))
        if len(found) != 1:
            names = ", ".join(
                f"{each.prefix} ({each.name})" for each in Machine.objects.filter(revoked_at=None)
            )
            many = f"{len(found)} machines are" if found else "No machine is"
            raise DomainError(f"{many} called {machine!r}; there are {names or 'none'}.")
        revoke_machine(machine=found[0], by=None)
        self.say(f"{found[0].name} ({found[0].prefix}) is revoked; what it trained is trained elsewhere.")
        return {"revoked": found[0].prefix}
