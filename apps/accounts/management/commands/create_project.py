"""Make a project."""

from typing import Any

from django.core.management.base import CommandParser

from apps.accounts import services
from apps.core.commands import TouchstoneCommand


class Command(TouchstoneCommand):
    help = "Create a project and make its owner a member."

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("slug")
        parser.add_argument("--name", default="", help="shown on pages; the slug if left out")
        parser.add_argument("--owner", metavar="EMAIL", help="an existing user")

    def run(self, *, slug: str, name: str, owner: str | None) -> dict[str, Any]:
        user = services.user_for(owner) if owner else None
        project = services.create_project(slug=slug, name=name, owner=user)
        self.say(f"Created the project {project.slug}" + (f", owned by {user.email}." if user else "."))
        if user is None:
            self.say(f"It has no members yet: create_user EMAIL --project {project.slug} --role owner")
        return {"slug": project.slug}
