"""Trajectories as documents: ATIF, chat messages, or what was imported, byte for byte."""

import json
from collections.abc import Iterator, Mapping
from typing import Any

import zstandard
from django.db.models import QuerySet
from msgspec.structs import replace

from apps.accounts.models import Project
from apps.core.errors import DomainError
from apps.trajectories import attachments, openai_documents
from apps.trajectories.models import Document, Trajectory
from apps.trajectories.selectors import iterate_trajectory_keys, load_trajectories
from workers import schema

DOCUMENTS = ("atif", "openai")
FORMATS = (*DOCUMENTS, "original")


def check_format(name: str, known: tuple[str, ...] = FORMATS) -> None:
    if name not in known:
        raise DomainError(f"There is no export format {name!r}; choose from {', '.join(known)}.")


def export_lines(project: Project, rows: QuerySet[Trajectory], *, format: str) -> Iterator[bytes]:
    """One line per trajectory, in the order they came. `original` gives back what was imported, on one line each."""
    check_format(format)
    for keys in iterate_trajectory_keys(rows):
        yield from _originals(keys) if format == "original" else _documents(project, keys, format)


def export_document(project: Project, key: int, *, format: str) -> dict[str, Any]:
    check_format(format, DOCUMENTS)
    external = Trajectory.objects.values_list("external_id", flat=True).get(pk=key)
    return _document(project, load_trajectories([key])[key], external, format)


def original_document(key: int) -> bytes:
    """What was imported, byte for byte; empty where no document is kept."""
    data = Document.objects.filter(pk=key).values_list("data", flat=True).first()
    return b"" if data is None else zstandard.ZstdDecompressor().decompress(bytes(data))


def export_documents(project: Project, runs: Mapping[str, schema.Trajectory]) -> dict[str, dict[str, Any]]:
    """The ATIF document of each of `runs`, which were loaded, by their keys; under the source's own id."""
    externals = dict(Trajectory.objects.filter(pk__in=runs).values_list("pk", "external_id"))
    return {key: _document(project, run, externals[int(key)], "atif") for key, run in runs.items()}


def _documents(project: Project, keys: list[int], format: str) -> Iterator[bytes]:
    found = load_trajectories(keys)
    externals = dict(Trajectory.objects.filter(pk__in=keys).values_list("pk", "external_id"))
    for key in keys:
        if key in found:
            document = _document(project, found[key], externals[key], format)
            yield json.dumps(document, ensure_ascii=False).encode() + b"\n"


def _originals(keys: list[int]) -> Iterator[bytes]:
    unpack = zstandard.ZstdDecompressor().decompress
    for document in Document.objects.filter(pk__in=keys).order_by("pk").iterator():
        # A line break between the values of a document is no content; within a text JSON writes it as \n.
        yield unpack(bytes(document.data)).strip().replace(b"\r\n", b" ").replace(b"\n", b" ") + b"\n"


def _document(project: Project, trajectory: schema.Trajectory, external: str, format: str) -> dict[str, Any]:
    """Under the source's own id; where it has none, ours is the session_id of ATIF, and no id when read again."""
    key = trajectory.id
    trajectory = attachments.restore_attachments(project, replace(trajectory, id=external or None))
    if format == "atif":
        return schema.to_atif(trajectory, session=key)
    return openai_documents.to_document(trajectory)
