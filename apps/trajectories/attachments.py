"""Images and files that came inside a trajectory as data URLs: taken out, kept once per project by their content.

A part then names `sha256:<digest>` instead of carrying the bytes; its content hash is of that form.
"""

import base64
import binascii
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from hashlib import sha256
from typing import Any, cast

from django.core.files.base import ContentFile
from django.core.files.storage import storages
from msgspec.structs import replace

from apps.accounts.models import Project
from apps.core.errors import NotFound
from apps.trajectories.models import Attachment
from apps.trajectories.pictures import RASTER, Look, is_small, look, smaller
from workers import schema
from workers.errors import InvalidRecord

PREFIX = "sha256:"
MISSING = "The file of this attachment is missing from the artifact store; `doctor` looks at the store."
_SMALL = "image/webp"
_DATA_URL = re.compile(r"data:([\w.+-]+/[\w.+-]+)?(?:;[\w.+=-]+)*;base64,(.*)", re.DOTALL)


@dataclass(frozen=True, slots=True)
class Blob:
    digest: str
    look: Look
    data: bytes


def detach(trajectory: schema.Trajectory) -> tuple[schema.Trajectory, list[Blob]]:
    """The trajectory with every data URL replaced by the name of its content, and what they held.

    Raises InvalidRecord for what is not what it is said to be (pictures.look).
    """
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
        Attachment(
            project=project,
            sha256=blob.digest,
            media_type=blob.look.media_type,
            size=len(blob.data),
            width=blob.look.width,
            height=blob.look.height,
        )
        for blob in wanted.values()
    )


def file_name(project_id: int, digest: str) -> str:
    return f"attachments/{project_id}/{digest[:2]}/{digest}"


def small_name(project_id: int, digest: str) -> str:
    """Of the small picture that is made of one when it is first looked at."""
    return f"{file_name(project_id, digest)}.small.webp"


def small_picture(attachment: Attachment) -> tuple[bytes, str]:
    """The picture, or where it is large a small one, and its media type. Raises NotFound for what is none."""
    if attachment.media_type not in RASTER:
        raise NotFound("This attachment is not a picture.")
    store, small = storages["artifacts"], small_name(attachment.project_id, attachment.sha256)
    if store.exists(small):
        return _content(small), _SMALL
    data = _content(file_name(attachment.project_id, attachment.sha256))
    if attachment.width and attachment.height and is_small(attachment.width, attachment.height, len(data)):
        return data, attachment.media_type
    try:
        made = smaller(data, attachment.media_type)
    except InvalidRecord as error:
        raise NotFound(error.message) from None
    store.save(small, ContentFile(made))
    return made, _SMALL


def _content(name: str) -> bytes:
    if not storages["artifacts"].exists(name):
        raise NotFound(MISSING)
    with storages["artifacts"].open(name) as file:
        return cast(bytes, file.read())


def last_picture(step: schema.Step) -> str | None:
    """The digest of the last picture of a step."""
    named = [part.source for part in _parts(step) if part.type == "image" and part.media_type in RASTER]
    return next(
        (name.removeprefix(PREFIX) for name in reversed(named) if name and name.startswith(PREFIX)), None
    )


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
    if digest not in blobs:
        blobs[digest] = Blob(digest, look(data, match[1] or "application/octet-stream"), data)
    name = PREFIX + digest
    return replace(
        part, source=name, media_type=blobs[digest].look.media_type, extra=_replaced(part.extra, url, name)
    )


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
