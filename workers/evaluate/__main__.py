"""`python -m workers.evaluate MODEL_DIR --data FILE --out report.json [--validation FILE] [--against DIR]
[--seen FILE] [--unknown NAME]`

Of several files, --data, --out and --validation are given once for each: what is in more than one is scored once.
"""

import argparse
import json
import sys
from itertools import chain
from pathlib import Path
from typing import Any

from workers.device import choose_device
from workers.errors import RewardError
from workers.evaluate.comparison import compare
from workers.evaluate.diagnostics import with_leaks
from workers.evaluate.predictions import RecordScorer
from workers.evaluate.public_benchmarks import evaluate_published
from workers.evaluate.report import evaluate, take_decisions
from workers.json_files import write_json
from workers.models import LoadedModel, load_scorer
from workers.schema import read_records
from workers.schema.contamination import find_contamination
from workers.schema.published import PUBLISHED
from workers.text.pictures import use_pictures

_CACHE_BYTES = 1024**3


def main() -> int:
    parser = argparse.ArgumentParser(
        prog="python -m workers.evaluate", description="Evaluate a reward model."
    )
    parser.add_argument("model", type=Path, help="an artifact folder")
    parser.add_argument(
        "--data",
        type=Path,
        required=True,
        action="append",
        help="records, as in data/test.jsonl.zst of a run",
    )
    parser.add_argument("--validation", type=Path, action="append", help="records to fit the temperature on")
    parser.add_argument(
        "--against", type=Path, help="another artifact folder: adds the paired difference in accuracy"
    )
    parser.add_argument(
        "--seen",
        type=Path,
        action="append",
        default=[],
        help="records that the model or its parents were trained on",
    )
    parser.add_argument(
        "--unknown",
        action="append",
        default=[],
        help="a model, itself or a parent, whose training data is unknown",
    )
    parser.add_argument("--out", type=Path, required=True, action="append", help="where the report goes")
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--format", choices=("jsonl", *PUBLISHED), default="jsonl", help="of DATA")
    arguments = parser.parse_args()
    if len({len(each) for each in (arguments.data, arguments.out, arguments.validation) if each}) > 1:
        parser.error("--data, --out and --validation are given equally often")
    try:
        _evaluate(arguments)
    except RewardError as error:
        sys.stderr.write(f"{error.message}\n")
        return 2
    return 0


def _evaluate(arguments: argparse.Namespace) -> None:
    device = str(choose_device(arguments.device))
    model = load_scorer(arguments.model, device=device)
    if arguments.format != "jsonl":
        for data, out in zip(arguments.data, arguments.out, strict=True):
            _write(out, {"published": evaluate_published(model, arguments.format, data)})
        return
    for folder in {data.parent for data in (*arguments.data, *(arguments.validation or ()))}:
        use_pictures(folder)
    cache = model.model.new_cache(_CACHE_BYTES) if isinstance(model, LoadedModel) else None
    scorer = RecordScorer(model, cache=cache)
    other = None
    if arguments.against:
        against = load_scorer(arguments.against, device=device)
        other = RecordScorer(against, cache=cache if isinstance(against, LoadedModel) else None)
    fitted_on = arguments.validation or [None] * len(arguments.data)
    for data, validation, out in zip(arguments.data, fitted_on, arguments.out, strict=True):
        records = list(read_records(data))
        report = evaluate(scorer, records, validation=list(read_records(validation)) if validation else [])
        if arguments.seen or arguments.unknown:
            leaks: dict[str, Any] = {"unknown": arguments.unknown}
            if arguments.seen:
                seen = chain.from_iterable(read_records(path) for path in arguments.seen)
                leaks |= find_contamination(seen, records)
            report = with_leaks(report, leaks)
        if other is not None:
            report["against"] = compare(scorer, other, records)
        write_json(out.with_suffix(".decisions.json"), take_decisions(report))
        _write(out, report)


def _write(path: Path, report: dict[str, Any]) -> None:
    part = path.with_name(path.name + ".part")
    part.write_text(json.dumps(report, indent=2, allow_nan=False) + "\n")
    part.replace(path)


if __name__ == "__main__":
    sys.exit(main())
