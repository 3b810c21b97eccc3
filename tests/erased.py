"""Where words are that were to be erased: in columns of all tables, and in files, packed ones too."""

import gzip
import io
import zipfile
from collections.abc import Iterator
from pathlib import Path

import pyarrow.parquet
import zstandard
from django.db import connection


def database_places(*words: str) -> list[str]:
    """Columns of text or JSON, of all tables, in which one of the words is."""
    found = []
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT table_name, column_name FROM information_schema.columns WHERE table_schema = 'public' "
            "AND (data_type IN ('text', 'character varying', 'jsonb', 'json', 'bytea', 'ARRAY', 'inet'))"
        )
        for table, column in cursor.fetchall():
            text = f'"{column}"::text'
            for word in words:
                cursor.execute(f'SELECT EXISTS (SELECT FROM "{table}" WHERE {text} ILIKE %s)', [f"%{word}%"])
                if cursor.fetchone()[0]:
                    found.append(f"{table}.{column}: {word}")
    return found


def file_places(folder: Path, *words: str) -> list[str]:
    """Files under the folder in whose name or content one of the words is, in any case of letters."""
    found = []
    for path in sorted(folder.rglob("*")):
        if path.is_file() and not path.is_symlink():
            inside = str(path.relative_to(folder))
            contents = [inside.encode(), *_contents(path.read_bytes())]
            for word in words:
                if any(word.lower().encode() in content.lower() for content in contents):
                    found.append(f"{inside}: {word}")
    return found


def _contents(data: bytes) -> Iterator[bytes]:
    """The bytes as they are, and unpacked."""
    yield data
    if data.startswith(b"\x28\xb5\x2f\xfd"):
        yield zstandard.ZstdDecompressor().stream_reader(io.BytesIO(data), read_across_frames=True).read()
    elif data.startswith(b"\x1f\x8b"):
        yield gzip.decompress(data)
    elif data.startswith(b"PAR1"):
        yield str(pyarrow.parquet.read_table(io.BytesIO(data)).to_pylist()).encode()
    elif data.startswith(b"PK"):
        with zipfile.ZipFile(io.BytesIO(data)) as archive:
            for name in archive.namelist():
                yield name.encode()
                yield from _contents(archive.read(name))
