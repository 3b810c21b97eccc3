"""The files of a dataset version hold what its decoded records are written as."""

from collections import Counter
from pathlib import Path

import zstandard

from apps.datasets.models import DatasetVersion
from apps.datasets.selectors import data_folder, read_dataset_records
from apps.datasets.statistics import is_usable_pair
from workers.schema import FeedbackRecord, read_records, write_records
from workers.schema.records import KIND_OF


def test_files_hold_what_decoded_records_would_be_written_as(traps: DatasetVersion, tmp_path: Path) -> None:
    """Lines are moved to the splits without decoding: byte for byte as `RecordWriter` writes the records."""
    assert len(traps.records) >= 5  # kinds
    folder = data_folder(traps)
    for split in traps.splits:
        records = list(read_records(folder / f"{split}.jsonl.zst"))
        assert write_records(tmp_path / split, records) == dict(Counter(map(kind_of, records)))
        assert unpacked(tmp_path / split) == unpacked(folder / f"{split}.jsonl.zst")
    usable = sum(is_usable_pair(record) for record in read_dataset_records(traps))
    assert traps.usable_pairs == usable


def kind_of(record: FeedbackRecord) -> str:
    return KIND_OF[type(record)]


def unpacked(path: Path) -> bytes:
    with path.open("rb") as raw, zstandard.ZstdDecompressor().stream_reader(raw) as stream:
        return stream.read()
