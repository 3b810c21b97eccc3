"""Results of a bulk job as JSON lines or Parquet, in the order of the trajectories, with constant memory."""

import json
from collections.abc import Iterator
from itertools import islice
from pathlib import Path
from typing import Any

from apps.bulk.models import BulkJob, BulkResult
from apps.core.errors import DomainError

_AT_ONCE = 2_000
_FIELDS = ("reward", "std", "tokens", "truncated", "steps", "embedding", "answer", "problem")


def result_rows(job: BulkJob, *, problems: bool = False) -> Iterator[dict[str, Any]]:
    """{trajectory, external_id, task, and what there is of reward, std, tokens, truncated, steps, embedding, answer,
    problem}. problems: only results that are a problem."""
    rows = job.results.select_related("trajectory__task")
    rows = rows.only("trajectory_id", *_FIELDS, "trajectory__external_id", "trajectory__task__external_id")
    if problems:
        rows = rows.exclude(problem="")
    last = 0
    while page := list(rows.filter(trajectory__gt=last).order_by("trajectory")[:_AT_ONCE]):
        yield from map(result_row, page)
        last = page[-1].trajectory_id


def result_row(row: BulkResult) -> dict[str, Any]:
    found = {
        "trajectory": str(row.trajectory_id),
        "external_id": row.trajectory.external_id,
        "task": row.trajectory.task.external_id,
    }
    values = {name: getattr(row, name) for name in _FIELDS}
    return found | {name: value for name, value in values.items() if value not in (None, "")}


def result_lines(job: BulkJob, *, problems: bool = False) -> Iterator[str]:
    for row in result_rows(job, problems=problems):
        yield json.dumps(row, ensure_ascii=False) + "\n"


def write_results(job: BulkJob, path: Path) -> int:
    """Write them to a file, Parquet where its name ends so; how many. Raises DomainError where it cannot be."""
    try:
        if path.suffix == ".parquet":
            return _write_parquet(job, path)
        written = 0
        with path.open("w", encoding="utf-8") as out:
            for line in result_lines(job):
                out.write(line)
                written += 1
    except OSError as error:
        raise DomainError(f"{path} cannot be written: {error.strerror or error}.") from error
    return written


def _write_parquet(job: BulkJob, path: Path) -> int:
    try:
        import pyarrow as pa
        from pyarrow import parquet
    except ImportError:
        raise DomainError("Parquet needs pyarrow: pip install pyarrow. Or name a .jsonl file.") from None
    shape = pa.schema(
        [
            ("trajectory", pa.int64()),
            ("external_id", pa.string()),
            ("task", pa.string()),
            ("reward", pa.float64()),
            ("std", pa.float64()),
            ("tokens", pa.int64()),
            ("truncated", pa.bool_()),
            ("steps", pa.list_(pa.float64())),
            ("embedding", pa.list_(pa.float32())),
            ("answer", pa.string()),
            ("problem", pa.string()),
        ]
    )
    rows, written = result_rows(job), 0
    with parquet.ParquetWriter(path, shape, compression="zstd") as out:
        while page := list(islice(rows, _AT_ONCE)):
            for row in page:
                row["trajectory"] = int(row["trajectory"])
                if "answer" in row:
                    row["answer"] = json.dumps(row["answer"], ensure_ascii=False)
            out.write_table(pa.Table.from_pylist(page, schema=shape))
            written += len(page)
    return written
