"""A table as a CSV file."""

import csv
import io
from collections.abc import Iterable, Iterator
from typing import Any

from apps.core.http.streaming import StreamedLines
from apps.core.spreadsheets import spreadsheet_cell
from apps.core.storage.storage_names import download_header


def csv_file(rows: Iterable[list[Any]], file_name: str) -> StreamedLines:
    response = StreamedLines(_lines(rows), "text/csv; charset=utf-8")
    response["Content-Disposition"] = download_header(file_name)
    return response


def _lines(rows: Iterable[list[Any]]) -> Iterator[str]:
    line = io.StringIO(newline="")
    writer = csv.writer(line)
    for row in rows:
        writer.writerow([spreadsheet_cell(cell) for cell in row])
        yield line.getvalue()
        line.seek(0)
        line.truncate()
