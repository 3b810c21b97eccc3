"""`export_model MODEL DIR [--format FORM]`: a model as a folder that others load."""

import tempfile
from pathlib import Path
from typing import Any

from django.core.management.base import CommandError, CommandParser

from apps.accounts.services import record_audit
from apps.core.commands import TouchstoneCommand
from apps.core.hub_push import push_folder, require_hub_name
from apps.training.model_export import ARTIFACT, ModelExportOptions, export_model
from apps.training.selectors import model_named
from workers.schema.export_forms import EXPORT_FORMS, OUT_TYPES


class Command(TouchstoneCommand):
    help = "Write a model as an artifact or in a form that other software loads, or push it to a Hugging Face hub."

    def add_arguments(self, parser: CommandParser) -> None:
        super().add_arguments(parser)
        parser.add_argument("model", help="project/name@version; by default the newest version")
        parser.add_argument("dir", type=Path, nargs="?", help="a new or empty folder")
        parser.add_argument(
            "--format", choices=[*EXPORT_FORMS], default=ARTIFACT, help=f"by default {ARTIFACT}"
        )
        parser.add_argument(
            "--base",
            default="",
            metavar="NAME",
            help="of an adapter: the name on a hub, or the folder, of the model that it belongs to",
        )
        parser.add_argument(
            "--outtype", choices=OUT_TYPES, default="", help="of a GGUF file: its numbers (default: f16)"
        )

        hub = parser.add_argument_group("push to a hub, with the token of HF_TOKEN")
        hub.add_argument("--push", metavar="hf://ORG/NAME", help="push the folder to this model of the hub")
        hub.add_argument(
            "--public", action="store_true", help="the model may be public; by default it is made private"
        )

    def run(self, **options: Any) -> dict[str, Any]:
        if options["push"]:
            require_hub_name(options["push"], kind="model")
        elif options["public"]:
            raise CommandError("--public belongs to --push.")
        if options["dir"] is None and not options["push"]:
            raise CommandError("Name a folder, or a model of a hub by --push.")
        model = model_named(options["model"])
        chosen = ModelExportOptions(form=options["format"], base=options["base"], out_type=options["outtype"])
        pushed = {}
        with tempfile.TemporaryDirectory(prefix="model-export-") as scratch:
            folder: Path = options["dir"] or Path(scratch) / "model"
            export_model(model=model, folder=folder, options=chosen)
            data = {"format": chosen.form} | ({"pushed_to": options["push"]} if options["push"] else {})
            record_audit(
                project=model.project, actor=None, verb="model.exported", target=str(model), data=data
            )
            if options["dir"]:
                self.say(f"{model} is exported to {folder}")
            if options["push"]:
                pushed = push_folder(
                    folder,
                    options["push"],
                    kind="model",
                    private=not options["public"],
                    message=f"Export {model} as {chosen.form}",
                    replaced="*",
                )
                self.say(f"pushed to {pushed['url']}, revision {pushed['revision']}")
        named = {"dir": str(folder)} if options["dir"] else {}
        return {"model": str(model), "format": chosen.form} | named | pushed
