"""`export_dataset NAME --format trl`: a frozen dataset for another trainer, as a stream of JSON lines."""

from collections import Counter
from pathlib import Path
from typing import Any

from django.core.management.base import CommandParser

from apps.core.commands import TouchstoneCommand
from apps.datasets.exports import EXPORTS, left_out_counts, record_export
from apps.datasets.selectors import find_dataset_version
from apps.datasets.splits import SPLITS


class Command(TouchstoneCommand):
    help = "Export a frozen dataset in a format of another trainer."

    def add_arguments(self, parser: CommandParser) -> None:
        super().add_arguments(parser)
        parser.add_argument("name", help="project/name@version; without @version, the newest")
        parser.add_argument("--format", required=True, choices=sorted(EXPORTS))
        parser.add_argument("--split", choices=SPLITS, help="only this split (default: all)")
        parser.add_argument("--out", type=Path, help="file to write (default: standard output)")

    def run(self, **options: Any) -> dict[str, Any]:
        dataset_version = find_dataset_version(options["name"])
        record_export(dataset_version, format=options["format"], split=options["split"], by=None)
        left_out: Counter[str] = Counter()
        rows = EXPORTS[options["format"]](dataset_version, options["split"], left_out)
        written = 0
        if options["out"]:
            with options["out"].open("w", encoding="utf-8") as out:
                for line in rows:
                    written += out.write(line) > 0
            self.say(f"{written} lines of {dataset_version} to {options['out']}")
        else:
            plain = self.stderr if self.as_json else self.stdout
            for line in rows:
                plain.write(line, ending="")
                written += 1
        counts = left_out_counts(left_out)
        for reason, number in counts.items():
            self.say(f"not written: {number} {reason}")
        return {
            "name": str(dataset_version),
            "format": options["format"],
            "split": options["split"],
            "lines": written,
            "left_out": counts,
        }
