"""`jsonl`: the records as they were frozen; a trajectory once, before the first record that names it."""

from collections.abc import Iterator

from apps.datasets.exports.columns import LeftOut
from apps.datasets.models import DatasetVersion
from apps.datasets.selectors import data_folder
from apps.datasets.splits import SPLITS
from workers.schema.storage import read_lines


def export(dataset_version: DatasetVersion, split: str | None, left_out: LeftOut) -> Iterator[str]:
    """Nothing is left out."""
    folder = data_folder(dataset_version)
    for each in SPLITS if split is None else (split,):
        for line in read_lines(folder / f"{each}.jsonl.zst"):
            yield line if line.endswith("\n") else line + "\n"
