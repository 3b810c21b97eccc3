"""`agreement PROJECT [--campaign C]`: Krippendorff's alpha and Cohen's kappas."""

from typing import Any

from django.core.management.base import CommandParser

from apps.accounts.services import project_for
from apps.annotation.agreement import agreement
from apps.core.commands import TouchstoneCommand


class Command(TouchstoneCommand):
    help = "Print the agreement between the annotators of a project."

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("project")
        parser.add_argument("--campaign", help="only this campaign")

    def run(self, **options: Any) -> dict[str, Any]:
        found = agreement(project=project_for(options["project"]), campaign=options["campaign"])
        for kind, values in found["kinds"].items():
            self._tell(kind, values)
            for name, criterion in values["criteria"].items():
                self._tell(f"{kind}, {name}", criterion)
        if not found["kinds"]:
            self.say("There are no annotations yet.")
        return found

    def _tell(self, title: str, values: dict[str, Any]) -> None:
        alpha = (
            "no item has two annotations"
            if values["alpha"] is None
            else f"alpha {values['alpha']:.4f}{_format_interval(values['interval'])} ({values['level']})"
        )
        self.say(f"{title}: {alpha}, {values['items']} items, {values['annotators']} annotators")
        for pair in values["pairs"]:
            kappa = "undefined" if pair["kappa"] is None else f"{pair['kappa']:.3f}"
            self.say(f"  {pair['a']} and {pair['b']}: kappa {kappa} over {pair['n']} items")


def _format_interval(interval: list[float] | None) -> str:
    return f" [{interval[0]:.3f}, {interval[1]:.3f}]" if interval else ""
