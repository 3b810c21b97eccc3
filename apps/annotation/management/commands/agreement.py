"""`agreement PROJECT [--campaign C]`: Krippendorff's alpha and Cohen's kappas."""

from typing import Any

from django.core.management.base import CommandParser

from apps.accounts.services import project_for
from apps.annotation.agreement import agreement
from apps.core.commands import TouchstoneCommand


class Command(TouchstoneCommand):
    help = "How far the project's annotators agree."

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("project")
        parser.add_argument("--campaign", help="only this campaign")

    def run(self, **options: Any) -> dict[str, Any]:
        found = agreement(project=project_for(options["project"]), campaign=options["campaign"])
        for kind, one in found["kinds"].items():
            self._tell(kind, one)
            for name, criterion in one["criteria"].items():
                self._tell(f"{kind}, {name}", criterion)
        if not found["kinds"]:
            self.say("Nobody has judged anything yet.")
        return found

    def _tell(self, title: str, one: dict[str, Any]) -> None:
        alpha = (
            "no item was judged twice"
            if one["alpha"] is None
            else f"alpha {one['alpha']:.4f}{_between(one['interval'])} ({one['level']})"
        )
        self.say(f"{title}: {alpha}, {one['items']} items, {one['annotators']} annotators")
        for pair in one["pairs"]:
            kappa = "undefined" if pair["kappa"] is None else f"{pair['kappa']:.3f}"
            self.say(f"  {pair['a']} and {pair['b']}: kappa {kappa} over {pair['n']} items")


def _between(interval: list[float] | None) -> str:
    return f" [{interval[0]:.3f}, {interval[1]:.3f}]" if interval else ""
