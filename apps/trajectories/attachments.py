"""Images and files that came inside a trajectory as data URLs: taken out, kept once per project by their content.

A part then names `sha256:<digest>` instead of carrying the bytes; its content hash is of that form. Anybody can write
such a source into a trajectory, so it is believed only where it is a digest and an Attachment row of the same project
has it; whatever else it says is text.
"""

import base64
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from hashlib import sha256
from typing import Any, BinaryIO

from msgspec.structs import replace

from apps.accounts.models import Project
from apps.core.errors import NotFound
from apps.core.storage import artifacts
from apps.core.storage.storage_names import is_digest, storage_name
from apps.trajectories.models import Attachment
from apps.trajectories.pictures import RASTER, Look, is_small, look, smaller
from workers import schema
from workers.errors import InvalidRecord
from workers.schema.patterns import TextPattern

PREFIX = "sha256:"
MISSING = "The file of this attachment is missing from the artifact store; `doctor` looks at the store."
_SMALL = "image/webp"
_FOLDER = "attachments"
# Of what stands before the comma: the content itself may be of any length.
_DATA_URL = TextPattern(r"data:([\w.+-]+/[\w.+-]+)?(?:;[\w.+=-]+)*;base64")


@dataclass(frozen=True, slots=True)
class Blob:
    digest: str
    look: Look
    data: bytes


def digest_of(source: str | None) -> str | None:
    """The digest that the source of a part names, if it names one; whether there is such an attachment, rows say."""
    digest = (source or "").removeprefix(PREFIX) if (source or "").startswith(PREFIX) else ""
    return digest if is_digest(digest) else None


def attachments_named(project: Project | int, digests: Collection[str]) -> dict[str, Attachment]:
    """The attachments of a project (or of the one with that key) by their digests; what it has not is left out."""
    wanted = {digest for digest in digests if is_digest(digest)}
    rows = Attachment.objects.filter(project=project, sha256__in=wanted) if wanted else ()
    return {row.sha256: row for row in rows}


def digests_in(steps: Iterable[schema.Step]) -> set[str]:
    """The digests that steps name, truly or not."""
    named = (digest_of(part.source) for step in steps for part in _parts(step))
    return {digest for digest in named if digest is not None}


def claims_in(trajectory: schema.Trajectory) -> frozenset[str]:
    """The sources that look like names of attachments, right or wrong, in a trajectory that somebody sends."""
    sources = (part.source or "" for step in trajectory.steps for part in _parts(step))
    return frozenset(source for source in sources if source.startswith(PREFIX))


def missing_of(project: Project, claims: Collection[str]) -> set[str]:
    """Of the claims those that name no attachment of the project."""
    digests = {claim: digest_of(claim) for claim in claims}
    found = attachments_named(project, {digest for digest in digests.values() if digest is not None})
    return {claim for claim, digest in digests.items() if digest not in found}


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
        artifacts.store_content(blob.data, file_name(project.pk, blob.digest))
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
    return storage_name(_FOLDER, project_id, digest[:2], digest)


def small_name(project_id: int, digest: str) -> str:
    """Of the small picture that is made of one when it is first looked at."""
    return storage_name(_FOLDER, project_id, digest[:2], f"{digest}.small.webp")


def open_attachment(attachment: Attachment) -> BinaryIO:
    """Its file. Raises NotFound."""
    try:
        return artifacts.open_file(file_name(attachment.project_id, attachment.sha256))
    except NotFound:
        raise NotFound(MISSING) from None


def small_picture(attachment: Attachment) -> tuple[bytes, str]:
    """The picture, or where it is large a small one, and its media type. Raises NotFound for what is none."""
    if attachment.media_type not in RASTER:
        raise NotFound("This attachment is not a picture.")
    small = small_name(attachment.project_id, attachment.sha256)
    if artifacts.is_stored(small):
        return artifacts.read_file(small), _SMALL
    data = content_of(attachment)
    if attachment.width and attachment.height and is_small(attachment.width, attachment.height, len(data)):
        return data, attachment.media_type
    try:
        made = smaller(data, attachment.media_type)
    except InvalidRecord as error:
        raise NotFound(error.message) from None
    artifacts.store_content(made, small)
    return made, _SMALL


def content_of(attachment: Attachment) -> bytes:
    """Raises NotFound."""
    with open_attachment(attachment) as file:
        return file.read()


def last_picture(step: schema.Step) -> str | None:
    """The digest that the last picture of a step names."""
    named = [part.source for part in _parts(step) if part.type == "image" and part.media_type in RASTER]
    return next((digest for digest in map(digest_of, reversed(named)) if digest), None)


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
    head, comma, content = url.partition(",")
    match = _DATA_URL.fullmatch(head) if comma else None
    try:
        data = base64.b64decode(content, validate=True) if match else None
    except ValueError:  # of base64, or a character that is not ASCII
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
    """The trajectory with the bytes of its attachments put back as data URLs: for whoever reads it elsewhere.

    A source that names none of this project, or one whose file is gone, stays as it is written.
    """
    found = attachments_named(project, digests_in(trajectory.steps))
    if not found:
        return trajectory
    steps = []
    for step in trajectory.steps:
        results = tuple(
            replace(result, content=tuple(_attach_part(found, part) for part in result.content))
            for result in step.observation
        )
        message = tuple(_attach_part(found, part) for part in step.message)
        steps.append(replace(step, message=message, observation=results))
    return replace(trajectory, steps=tuple(steps))


def _attach_part(found: Mapping[str, Attachment], part: schema.Part) -> schema.Part:
    attachment = found.get(digest_of(part.source) or "")
    if attachment is None or part.source is None:
        return part
    try:
        encoded = base64.b64encode(content_of(attachment)).decode()
    except NotFound:
        return part
    url = f"data:{attachment.media_type};base64,{encoded}"
    return replace(
        part, source=url, media_type=attachment.media_type, extra=_replaced(part.extra, part.source, url)
    )
