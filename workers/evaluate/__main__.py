"""`python -m workers.evaluate MODEL_DIR --data FILE.jsonl.zst --out report.json [--validation FILE] [--against DIR]`"""

import argparse
import json
import sys
from pathlib import Path
from typing import Any

from workers.errors import RewardError
from workers.evaluate.comparison import compare
from workers.evaluate.published import evaluate_published
from workers.evaluate.report import evaluate
from workers.models import load
from workers.schema import read_records
from workers.schema.published import PUBLISHED
from workers.train.run import choose_device


def main() -> int:
    parser = argparse.ArgumentParser(
        prog="python -m workers.evaluate", description="Evaluate a reward model."
    )
    parser.add_argument("model", type=Path, help="an artifact folder")
    parser.add_argument(
        "--data", type=Path, required=True, help="records, as in data/test.jsonl.zst of a run"
    )
    parser.add_argument("--validation", type=Path, help="records to fit the temperature on")
    parser.add_argument(
        "--against", type=Path, help="another artifact folder: adds the paired difference in accuracy"
    )
    parser.add_argument("--out", type=Path, required=True, help="where the report goes")
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--format", choices=("jsonl", *PUBLISHED), default="jsonl", help="of DATA")
    arguments = parser.parse_args()
    try:
        device = str(choose_device(arguments.device))
        model = load(arguments.model, device=device)
        validation = list(read_records(arguments.validation)) if arguments.validation else []
        if arguments.format != "jsonl":
            _write(arguments.out, {"published": evaluate_published(model, arguments.format, arguments.data)})
            return 0
        records = list(read_records(arguments.data))
        report = evaluate(model, records, validation=validation)
        if arguments.against:
            report["against"] = compare(model, load(arguments.against, device=device), records)
    except RewardError as error:
        sys.stderr.write(f"{error.message}\n")
        return 2
    _write(arguments.out, report)
    return 0


def _write(path: Path, report: dict[str, Any]) -> None:
    part = path.with_name(path.name + ".part")
    part.write_text(json.dumps(report, indent=2, allow_nan=False) + "\n")
    part.replace(path)


if __name__ == "__main__":
    sys.exit(main())
