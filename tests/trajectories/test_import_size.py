"""Memory and order of imports of many files: what `benchmarks.import_size` measures at full size."""

import io
import json
import tracemalloc
import zipfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from django.core.management import call_command

from apps.accounts.models import Project
from apps.core.storage.unpacking import InputBounds, TooMuch
from apps.trajectories.formats.entries import seekable_original
from apps.trajectories.import_reader import ImportReader, read_import_records
from apps.trajectories.models import Trajectory
from benchmarks.import_size import KINDS, measure_import
from benchmarks.size_records import session_files

_MB = 2**20


def given(stream: Any) -> Iterator[tuple[int, str, Any]]:
    """What each record of a stream brings: its number, the source and the document of each trajectory."""
    reader = ImportReader(None)
    number = 0
    for number, record in enumerate(read_import_records(stream), 1):
        for part in reader.parts(record):
            assert part.error is None, part.error
            yield number, part.source, part.document
    for part in reader.rest():
        yield number, part.source, part.document


def written(folder: Path, count: int) -> int:
    """Session files; how many records they have."""
    total = 0
    for name, lines in session_files(count):
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(b"".join(lines))
        total += len(lines)
    return total


class TestFolder:
    def test_each_session_is_given_when_its_files_are_read(self, tmp_path: Path) -> None:
        total = written(tmp_path, 30)
        found = list(given(tmp_path))
        assert len(found) == 30
        assert len({number for number, _, _ in found}) >= 25  # not all at the end
        assert sum(number == total for number, _, _ in found) == 1
        assert sum(len(document) for _, _, document in found) == total

    def test_a_sub_agent_in_a_folder_of_its_session_names_it(self, tmp_path: Path) -> None:
        written(tmp_path, 12)
        reader = ImportReader(None)
        parts = [part for record in read_import_records(tmp_path) for part in reader.parts(record)]
        read = [reader.read(part) for part in [*parts, *reader.rest()]]
        agents = {each.id: each.metadata["parent"] for each in read if "parent" in each.metadata}
        sessions = {each.id for each in read}
        assert len(agents) == 1
        assert set(agents.values()) < sessions

    def test_memory_does_not_grow_with_the_number_of_files(self, tmp_path: Path) -> None:
        def peak(count: int) -> int:
            folder = tmp_path / str(count)
            written(folder, count)
            tracemalloc.start()
            assert sum(1 for _ in given(folder)) == count
            found = tracemalloc.get_traced_memory()[1]
            tracemalloc.stop()
            return found

        peak(10)  # what is imported and cached once
        assert peak(120) < peak(30) + _MB

    def test_its_bytes_are_not_unpacked(self, tmp_path: Path) -> None:
        line = json.dumps({"prompt": "x" * 1000, "response": "y"}).encode() + b"\n"
        (tmp_path / "a.jsonl").write_bytes(line * 5)
        bounds = InputBounds(most_bytes=1000)
        assert sum(1 for _ in read_import_records(tmp_path, bounds=bounds)) == 5
        assert bounds.packed == 5 * len(line)
        assert bounds.unpacked == 0


@pytest.mark.django_db
@pytest.mark.parametrize("kind", KINDS)
def test_the_benchmark_imports_all_of_it(kind: str, project: Project, tmp_path: Path) -> None:
    with KINDS[kind](500_000, 12, tmp_path) as source:
        found = measure_import(project, source).as_json()
    assert found["rows"] == Trajectory.objects.filter(project=project).count() > 10
    assert min(found["megabytes"]) > 10
    formats = set(Trajectory.objects.filter(project=project).values_list("source_format", flat=True))
    is_of_files = kind in ("folder_of_sessions", "zip_of_sessions")
    assert formats == (
        {"claude-code", "codex"} if is_of_files else {"claude-code" if "sessions" in kind else "openai"}
    )


@pytest.mark.django_db
def test_the_limit_of_uploads_does_not_hold_for_the_command(
    project: Project, tmp_path: Path, settings: Any
) -> None:
    settings.MAX_UNPACKED_BYTES = 1000
    path = tmp_path / "a.zip"
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("a.jsonl", json.dumps({"prompt": "x" * 2000, "response": "y"}))
    with path.open("rb") as stream, pytest.raises(TooMuch, match="TOUCHSTONE_MAX_UNPACKED_MB"):
        list(read_import_records(stream))
    call_command("import_trajectories", project.slug, str(path))
    assert Trajectory.objects.filter(project=project).count() == 1


class TestSeekableOriginal:
    def test_it_is_the_file_itself_whose_bytes_count_as_sent(self) -> None:
        file, bounds = io.BytesIO(b"PAR1" + b"x" * 1000), InputBounds()
        file.seek(700)
        assert seekable_original(file, b"PAR1" + b"x" * 600, bounds) is file
        assert (file.tell(), bounds.packed) == (0, 1004)

    def test_what_was_unpacked_or_comes_only_once_is_copied(self) -> None:
        assert seekable_original(io.BytesIO(b"\x1f\x8b" + b"x" * 600), b"PAR1" * 200, InputBounds()) is None

        class Once(io.RawIOBase):
            def seekable(self) -> bool:
                return False

        assert seekable_original(Once(), b"PAR1", InputBounds()) is None  # type: ignore[arg-type]
