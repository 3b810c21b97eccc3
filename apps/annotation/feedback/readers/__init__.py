"""One module per feedback format. Adding one is a module with `read` and a line here."""

from collections.abc import Callable, Iterator
from typing import BinaryIO

from apps.annotation.feedback.incoming import Found
from apps.annotation.feedback.readers import (
    agentrx,
    any_record,
    atif,
    autolibra,
    csv_table,
    fine_grained_rlhf,
    hh,
    otel,
    outcomes,
    pandalm,
    record_formats,
    trainer_files,
    who_and_when,
)

Reader = Callable[[BinaryIO], Iterator[tuple[int, Found]]]

READERS: dict[str, Reader] = {
    **record_formats.BY_FORMAT,
    "jsonl": any_record.read,
    "outcomes": outcomes.read,
    **trainer_files.BY_FORMAT,
    "csv": csv_table.read,
    "atif": atif.read,
    "otel": otel.read,
    "hh": hh.read,
    "fine-grained-rlhf": fine_grained_rlhf.read,
    "pandalm": pandalm.read,
    "who-and-when": who_and_when.read,
    "agentrx": agentrx.read,
    "autolibra": autolibra.read,
}
