"""`parquet`: a folder for `datasets.load_dataset`: README.md, and data/KIND/SPLIT-00000-of-0000N.parquet.

Each kind of record is a configuration of its own (`load_dataset(folder, "pairwise")`), as the columns differ; the one
with the most records is the default. A kind or a split without a record has no file.
"""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

from apps.datasets.exports.columns import LeftOut
from apps.datasets.exports.dataset_card import AnswerAgreement, dataset_card
from apps.datasets.exports.parquet_files import ParquetShards, require_pyarrow
from apps.datasets.exports.parquet_rows import COLUMNS, Feature, record_row
from apps.datasets.models import DatasetVersion
from apps.datasets.selectors import read_dataset_records
from apps.datasets.splits import SPLITS
from workers.schema.records import KIND_OF


def export(
    dataset_version: DatasetVersion,
    split: str | None,
    left_out: LeftOut,
    folder: Path,
    *,
    shard_bytes: int | None = None,
) -> Iterator[str]:
    """Writes the folder; yields the kind of each row. Nothing is left out."""
    arrow = require_pyarrow()
    counts: dict[str, dict[str, int]] = {}
    agreement = AnswerAgreement()
    for each in SPLITS if split is None else (split,):
        shards: dict[str, ParquetShards] = {}
        try:
            for record in read_dataset_records(dataset_version, each):
                kind = KIND_OF[type(record)]
                if kind not in shards:
                    schema = arrow_schema(arrow, COLUMNS[kind])
                    shards[kind] = ParquetShards(
                        folder / "data" / kind, each, schema, shard_bytes=shard_bytes
                    )
                shards[kind].add(record_row(dataset_version, record))
                agreement.add(record)
                yield kind
            for name, files in shards.items():
                files.close()
                counts.setdefault(name, {})[each] = files.rows
        finally:
            for files in shards.values():
                files.abort()
    card = dataset_card(dataset_version, counts, split, agreement)
    (folder / "README.md").write_text(card, encoding="utf-8")


def arrow_schema(arrow: Any, columns: dict[str, Feature]) -> Any:
    return arrow.schema([(name, _arrow_type(arrow, feature)) for name, feature in columns.items()])


def _arrow_type(arrow: Any, feature: Any) -> Any:
    if isinstance(feature, dict):
        return arrow.struct([(name, _arrow_type(arrow, inner)) for name, inner in feature.items()])
    if isinstance(feature, list):
        return arrow.list_(_arrow_type(arrow, feature[0]))
    return {
        "string": arrow.string(),
        "int64": arrow.int64(),
        "float64": arrow.float64(),
        "bool": arrow.bool_(),
    }[feature]
