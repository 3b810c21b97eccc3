"""Make someone who has an account a member of a project."""

from typing import Any

from django.core.management.base import CommandParser

from apps.accounts import services
from apps.accounts.models import Role
from apps.core.commands import TouchstoneCommand
from apps.core.errors import Conflict


class Command(TouchstoneCommand):
    help = "Make an existing user a member of a project, or change the role of a member."

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("project")
        parser.add_argument("email")
        parser.add_argument("--role", choices=Role.values, default=Role.ANNOTATOR.value)

    def run(self, *, project: str, email: str, role: str) -> dict[str, Any]:
        user = services.user_for(email)
        if not user.is_active:
            raise Conflict(f"The account {user.email} is closed, so it cannot be a member of a project.")
        found = services.project_for(project)
        before = found.memberships.filter(user=user).values_list("role", flat=True).first()
        services.set_member(project=found, user=user, role=Role(role), by=None)
        if before is None:
            self.say(f"{user.email} is now a member of {project} as {role}.")
        elif before == role:
            self.say(f"{user.email} is a member of {project} as {role} already.")
        else:
            self.say(f"{user.email} is now {role} in {project}; before, {before}.")
        return {"project": project, "email": user.email, "role": role, "before": before}
