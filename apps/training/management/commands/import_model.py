"""`import_model PROJECT SOURCE`: register a model that was trained elsewhere."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import fields
from pathlib import Path
from typing import Any

from django.core.management.base import CommandParser

from apps.accounts.models import Project
from apps.accounts.services import project_for
from apps.core.commands import TouchstoneCommand
from apps.core.errors import DomainError
from apps.training.hub_models import PREFIX as HUB
from apps.training.hub_models import HubModel, HubModelName
from apps.training.import_services import own_name
from apps.training.public_models import (
    PublicCheckpoint,
    downloaded,
    import_public_model,
    is_artifact,
    recognise_checkpoint,
)
from apps.training.transfer import import_model
from workers.schema.import_options import OWN_TRAJECTORIES, ImportOptions

_WORDS = {"type": "as"}  # options that a flag names otherwise


class Command(TouchstoneCommand):
    help = "Register a model that Touchstone exported, or a public reward model, as a model of the project."
    store_access = "check"

    def add_arguments(self, parser: CommandParser) -> None:
        super().add_arguments(parser)
        parser.add_argument("project")
        parser.add_argument(
            "source",
            help="the folder of an exported model or of a public checkpoint, or hf://ORG/NAME@REVISION",
        )
        parser.add_argument("--name", default="", help="of the model; by default the folder's name")
        parser.add_argument(
            "--calibrate",
            default="",
            metavar="WHAT",
            help="by what the median and standard deviation of its rewards are measured: a JSON lines file of what "
            f"`score` takes, name@version of a dataset, or `{OWN_TRAJECTORIES}` for those of the project",
        )
        parser.add_argument(
            "--dry-run", action="store_true", help="say what was recognised, and import nothing"
        )
        for option in fields(ImportOptions):
            flag = _WORDS.get(option.name, option.name).replace("_", "-")
            kind = type(option.default)
            parser.add_argument(
                f"--{flag}",
                dest=f"option_{option.name}",
                type=kind,
                metavar=option.name.upper(),
                help=option.metadata["help"],
            )

    def run(self, **options: Any) -> dict[str, Any]:
        project = project_for(options["project"])
        given = {
            name.removeprefix("option_"): value
            for name, value in options.items()
            if name.startswith("option_") and value is not None
        }
        if options["source"].startswith(HUB):
            with self._downloaded(options["source"]) as checkpoint:
                return self._import_public(project, checkpoint, ImportOptions.parse(given), options)
        folder = Path(options["source"]).resolve()
        if not folder.is_dir():
            raise DomainError(f"{folder} is not a folder.")
        if is_artifact(folder):
            return self._import_artifact(project, folder, given, options)
        checkpoint = PublicCheckpoint(folder=folder, source=folder.name)
        return self._import_public(project, checkpoint, ImportOptions.parse(given), options)

    @contextmanager
    def _downloaded(self, source: str) -> Iterator[PublicCheckpoint]:
        model = HubModel(HubModelName.parse(source), token="")
        self.say(f"{model.name} at {model.commit}: {len(model.files)} files, {model.bytes / 1e9:.2f} GB ...")
        with downloaded(model) as checkpoint:
            yield checkpoint

    def _import_artifact(
        self, project: Project, folder: Path, given: dict[str, Any], options: dict[str, Any]
    ) -> dict[str, Any]:
        if given or options["calibrate"] or options["dry_run"]:
            raise DomainError(
                f"{folder.name} is a model that Touchstone made: it is imported as it is. Leave out the options for "
                "public models."
            )
        model = import_model(project=project, folder=folder, name=options["name"] or folder.name, by=None)
        self.say(f"{model} is registered")
        return {"model": str(model)}

    def _import_public(
        self, project: Project, checkpoint: PublicCheckpoint, given: ImportOptions, options: dict[str, Any]
    ) -> dict[str, Any]:
        if options["dry_run"]:
            found = recognise_checkpoint(checkpoint, given)
            self._describe(found)
            return {"recognised": found}
        calibration_file = Path(options["calibrate"])
        by_file = calibration_file.is_file()
        model = import_public_model(
            project=project,
            checkpoint=checkpoint,
            options=given,
            name=options["name"] or own_name(checkpoint.source),
            calibration="" if by_file else options["calibrate"],
            calibration_file=calibration_file.resolve() if by_file else None,
            by=None,
        )
        found = model.manifest["imported"]
        self._describe(found)
        self.say(f"{model} is registered")
        return {"model": str(model), "recognised": found}

    def _describe(self, found: dict[str, Any]) -> None:
        self.say(f"Recognised as {found['type']}: {found['because']}.")
        self.say(f"  reward: {found['reward']}")
        if len(found["labels"]) > 1:
            self.say(f"  outputs: {', '.join(found['labels'])}")
        self.say(f"  template: {found['template']}")
        self.say(f"  read: {found['reads']}")
        self.say(
            f"  size: {found['parameters']:,} parameters, {found['bytes'] / 1e9:.2f} GB; reads at most "
            f"{found['max_tokens']:,} tokens"
        )
        for note in found["notes"]:
            self.say(f"  - {note}")
        if "check" in found:
            self.say(f"  {_check_words(found['check'])}")


def _check_words(check: dict[str, Any] | None) -> str:
    if check is None or "not_compared" in check:
        return f"not compared with its own code{': ' + str(check['not_compared']) if check else ''}"
    return (
        f"compared with its own code on {check['conversations']} conversations: rewards differ by at most "
        f"{check['largest_difference']:.1e}"
    )
