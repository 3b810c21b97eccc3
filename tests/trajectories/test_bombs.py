"""Small inputs that would become large ones: refused with the limit, nothing kept, and nothing left behind."""

import asyncio
import io
import json
import struct
import time
import zipfile
from pathlib import Path
from threading import Event
from typing import Any

import pytest
import zstandard
from django.core.files.base import ContentFile
from django.test import Client

from apps.accounts.models import Project
from apps.core.http.body_limits import BodyLimit
from apps.core.storage import unpacking
from apps.core.storage.temporary_files import TooMuchTemporary
from apps.core.storage.unpacking import InputBounds, TooMuch
from apps.trajectories import services, uploads
from apps.trajectories.formats import stream
from apps.trajectories.formats.stream import read_records
from apps.trajectories.models import Trajectory
from tests.trajectories.conftest import lines, record

MB = 2**20


def _packed(begins: bytes, block: bytes, count: int) -> bytes:
    compressor = zstandard.ZstdCompressor(level=3).compressobj()
    pieces = [
        compressor.compress(begins),
        *(compressor.compress(block) for _ in range(count)),
        compressor.flush(),
    ]
    return b"".join(pieces)


@pytest.fixture
def small(settings: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Bounds that take no time to reach."""
    settings.HOME, settings.MAX_UNPACKED_BYTES = tmp_path, 32 * MB
    monkeypatch.setattr(unpacking, "ALWAYS", 8 * MB)
    return tmp_path


BOMBS = {
    "blank lines": _packed(b"", b"\n" * MB, 100),
    "zeroes": _packed(b"", b"\0" * MB, 100),
    "a zip": _packed(b"PK\x03\x04", b"\0" * MB, 100),
    "one line": _packed(b'{"a": "', b"x" * MB, 100),
    "an array": _packed(b"[", b" " * MB, 100),
}


@pytest.mark.parametrize("bomb", BOMBS.values(), ids=BOMBS)
@pytest.mark.parametrize("keep_good", ["", "?keep_good=1"])
@pytest.mark.django_db
def test_a_bomb_is_answered_at_once(
    client: Client, key: dict[str, str], small: Path, bomb: bytes, keep_good: str
) -> None:
    assert len(bomb) < 64 * 1024
    began = time.thread_time()
    url = f"/api/v1/projects/desk/trajectories{keep_good}"
    answer = client.post(url, bomb, content_type="application/octet-stream", headers=key)
    assert time.thread_time() - began < 5
    if keep_good and answer.status_code == 200:  # what was before it would be kept; there was nothing
        assert answer.json()["created"] == 0
        assert answer.json()["rejected"]
    else:
        assert answer.status_code in (400, 413, 422)
        assert answer["Content-Type"] == "application/problem+json"
    assert not Trajectory.objects.exists()
    assert not [path for path in small.rglob("*") if path.is_file()]


@pytest.mark.django_db
def test_good_records_before_a_bomb_are_not_kept(project: Project, small: Path) -> None:
    bomb = _packed(lines(*(record(number) for number in range(3))), lines(record(4, extra="x" * MB)), 100)
    with pytest.raises(TooMuch, match="300 times"):
        services.import_trajectories(project=project, stream=io.BytesIO(bomb), by=None)
    assert not Trajectory.objects.exists()


def test_blank_lines_and_blanks_are_counted_where_nothing_is_packed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(stream, "MOST_BLANK", 1000)
    found = list(read_records(io.BytesIO(b'{"a": 1}\n' + b"\n" * 5000 + b'{"a": 2}\n'), limit=MB))
    assert [record.document for record in found] == [{"a": 1}, None]
    assert "over 1,000 empty lines" in str(found[1].error)
    (error,) = read_records(io.BytesIO(b"[" + b" " * 2 * MB + b"1]"), limit=MB)
    assert "empty characters" in str(error.error)


def test_a_list_of_entries_is_not_read_where_it_is_too_long() -> None:
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w") as archive:
        archive.writestr("a.json", "{}")
    data = bytearray(out.getvalue())
    struct.pack_into("<I", data, data.rindex(b"PK\x05\x06") + 12, 400 * MB)
    (found,) = read_records(io.BytesIO(bytes(data)), limit=MB)
    assert "entries; at most 100000 are read" in str(found.error)


def test_entries_are_counted_together() -> None:
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED) as archive:
        for number in range(20):
            archive.writestr(f"{number}.json", json.dumps({"a": "x" * MB}))
    with pytest.raises(TooMuch, match="more than 8 MB"):
        list(read_records(io.BytesIO(out.getvalue()), limit=4 * MB, bounds=InputBounds(most_bytes=8 * MB)))


@pytest.mark.django_db
def test_an_import_ends_when_its_client_leaves(project: Project) -> None:
    gone = Event()

    def left_after_the_first(done: int) -> None:
        gone.set()

    with pytest.raises(unpacking.ClientGone):
        services.import_trajectories(
            project=project,
            stream=io.BytesIO(lines(*(record(number) for number in range(2500)))),
            by=None,
            progress=left_after_the_first,
            bounds=InputBounds(gone=gone.is_set),
        )
    assert not Trajectory.objects.exists()


def test_the_server_notes_that_a_client_left() -> None:
    seen: list[bool] = []

    async def app(scope: Any, receive: Any, send: Any) -> None:
        await receive()
        gone = unpacking.client_left()
        seen.append(gone())
        await receive()
        seen.append(gone())

    messages = [{"type": "http.request", "body": b"x"}, {"type": "http.disconnect"}]

    async def receive() -> Any:
        return messages.pop(0)

    scope = {"type": "http", "path": "/", "headers": []}
    asyncio.run(BodyLimit(app, MB, "X")(scope, receive, receive))
    assert seen == [False, True]


@pytest.mark.django_db
def test_uploads_that_wait_to_be_confirmed_are_limited(project: Project, settings: Any) -> None:
    settings.MAX_TEMPORARY_BYTES = 100
    uploads.keep_upload(project=project, file=ContentFile(b"x" * 80))
    with pytest.raises(TooMuchTemporary):
        uploads.keep_upload(project=project, file=ContentFile(b"x" * 30))


@pytest.mark.parametrize("document", ['{"a":' * 5000, "9" * 5000, "[" * 100_000])
@pytest.mark.django_db
def test_what_is_too_deep_or_too_long_is_told(client: Client, key: dict[str, str], document: str) -> None:
    url = "/api/v1/projects/desk/trajectories"
    answer = client.generic("POST", url, document, content_type="application/json", headers=key)
    assert answer.status_code == 422
    assert "too" in answer.json()["detail"]
