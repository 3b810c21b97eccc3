"""Images and files that came inside a trajectory as data URLs: taken out, kept once per project by their content.

A part then names `sha256:<digest>` instead of carrying the bytes; its content hash is of that form.
"""

import base64
import binascii
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from hashlib import sha256
from typing import Any

from django.core.files.base import ContentFile
from django.core.files.storage import storages
from msgspec.structs import replace

from apps.accounts.models import Project
from apps.trajectories.models import Attachment
from workers import schema

PREFIX = "sha256:"
_DATA_URL = re.compile(r"data:([\w.+-]+/[\w.+-]+)?(?:;[\w.+=-]+)*;base64,(.*)", re.DOTALL)
_MAGIC = (
    (b"\x89PNG\r\n\x1a\n", "image/png"),
    (b"\xff\xd8\xff", "image/jpeg"),
    (b"GIF87a", "image/gif"),
    (b"GIF89a", "image/gif"),
)
RASTER = ("image/png", "image/jpeg", "image/gif", "image/webp")


@dataclass(frozen=True, slots=True)
class Blob:
    digest: str
    media_type: str
    data: bytes


def detach(trajectory: schema.Trajectory) -> tuple[schema.Trajectory, list[Blob]]:
    """The trajectory with every data URL replaced by the name of its content, and what they held."""
    if not any(_carries(part) for step in trajectory.steps for part in _parts(step)):
        return trajectory, []
    blobs: dict[str, Blob] = {}
    steps = tuple(_detach_step(step, blobs) for step in trajectory.steps)
    return replace(trajectory, steps=steps), list(blobs.values())


def store(project: Project, blobs: Sequence[Blob]) -> None:
    """Keep what is not kept yet. Rows are the caller's transaction's; a file without a row does no harm."""
    wanted = {blob.digest: blob for blob in blobs}
    kept = Attachment.objects.filter(project=project, sha256__in=wanted).values_list("sha256", flat=True)
    for digest in kept:
        del wanted[digest]
    for blob in wanted.values():
        name = file_name(project.pk, blob.digest)
        if not storages["artifacts"].exists(name):
            storages["artifacts"].save(name, ContentFile(blob.data))
    Attachment.objects.bulk_create(
        Attachment(project=project, sha256=blob.digest, media_type=blob.media_type, size=len(blob.data))
        for blob in wanted.values()
    )


def file_name(project_id: int, digest: str) -> str:
    return f"attachments/{project_id}/{digest[:2]}/{digest}"


def media_type_of(data: bytes, declared: str) -> str:
    """What the bytes are. What they cannot be recognised as is never shown as a picture, whatever it is declared."""
    for magic, found in _MAGIC:
        if data.startswith(magic):
            return found
    if data[:4] == b"RIFF" and data[8:12] == b"WEBP":
        return "image/webp"
    return "application/octet-stream" if declared in RASTER else declared[:100]


def _parts(step: schema.Step) -> Iterable[schema.Part]:
    yield from step.message
    for result in step.observation:
        yield from result.content


def _carries(part: schema.Part) -> bool:
    return part.source is not None and part.source.startswith("data:")


def _detach_step(step: schema.Step, blobs: dict[str, Blob]) -> schema.Step:
    observation = tuple(
        replace(result, content=tuple(_detach_part(part, blobs) for part in result.content))
        for result in step.observation
    )
    message = tuple(_detach_part(part, blobs) for part in step.message)
    return replace(step, message=message, observation=observation)


def _detach_part(part: schema.Part, blobs: dict[str, Blob]) -> schema.Part:
    if not _carries(part) or part.source is None:
        return part
    url = part.source
    match = _DATA_URL.fullmatch(url)
    try:
        data = base64.b64decode(match[2], validate=True) if match else None
    except binascii.Error:
        data = None
    if match is None or data is None:
        return part  # not base64: stays as it was said
    digest = sha256(data).hexdigest()
    media_type = media_type_of(data, match[1] or "application/octet-stream")
    blobs.setdefault(digest, Blob(digest, media_type, data))
    name = PREFIX + digest
    return replace(part, source=name, media_type=media_type, extra=_replaced(part.extra, url, name))


def _replaced(value: Any, old: str, new: str) -> Any:
    """`value` with the string `old` replaced wherever it stands."""
    if isinstance(value, dict):
        return {key: _replaced(item, old, new) for key, item in value.items()}
    if isinstance(value, list):
        return [_replaced(item, old, new) for item in value]
    return new if value == old else value


def attach(project: Project, trajectory: schema.Trajectory) -> schema.Trajectory:
    """The trajectory with the bytes of its attachments put back as data URLs: for whoever reads it elsewhere."""
    if not any((part.source or "").startswith(PREFIX) for step in trajectory.steps for part in _parts(step)):
        return trajectory
    steps = []
    for step in trajectory.steps:
        results = tuple(
            replace(result, content=tuple(_attach_part(project, part) for part in result.content))
            for result in step.observation
        )
        message = tuple(_attach_part(project, part) for part in step.message)
        steps.append(replace(step, message=message, observation=results))
    return replace(trajectory, steps=tuple(steps))


def _attach_part(project: Project, part: schema.Part) -> schema.Part:
    name = part.source or ""
    if not name.startswith(PREFIX):
        return part
    stored = file_name(project.pk, name.removeprefix(PREFIX))
    if not storages["artifacts"].exists(stored):
        return part  # named by the source itself, never uploaded
    with storages["artifacts"].open(stored) as file:
        encoded = base64.b64encode(file.read()).decode()
    url = f"data:{part.media_type or 'application/octet-stream'};base64,{encoded}"
    return replace(part, source=url, extra=_replaced(part.extra, name, url))
