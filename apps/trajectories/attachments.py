"""Images and files from data URLs of trajectories, stored once per project by their content.

A part then has the source `sha256:<digest>` instead of the bytes; its content hash is computed from that form. Anyone
can write such a source into a trajectory, so it counts only if an Attachment row of the same project has the digest;
any other source is text.
"""

import base64
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path
from typing import Any, BinaryIO

from msgspec.structs import replace

from apps.accounts.models import Project
from apps.core.errors import NotFound
from apps.core.storage import artifacts
from apps.core.storage.storage_names import is_digest, storage_name
from apps.trajectories.models import Attachment
from apps.trajectories.pictures import IMAGE_TYPES, MediaInfo, fits_thumbnail, inspect_media, make_thumbnail
from workers import schema
from workers.errors import InvalidRecord
from workers.schema.patterns import TextPattern
from workers.schema.picture_archive import PICTURES
from workers.schema.picture_archive import write_pictures as write_picture_archive

PREFIX = "sha256:"
MISSING = "The file of this attachment is missing from the artifact store. Run `doctor` to check the store."
_SMALL = "image/webp"
_FOLDER = "attachments"
# Of what stands before the comma: the content itself may be of any length.
_DATA_URL = TextPattern(r"data:([\w.+-]+/[\w.+-]+)?(?:;[\w.+=-]+)*;base64")


@dataclass(frozen=True, slots=True)
class Blob:
    digest: str
    media: MediaInfo
    data: bytes


def parse_digest(source: str | None) -> str | None:
    """The digest in the source of a part, if it has that form; the attachment may not exist."""
    digest = (source or "").removeprefix(PREFIX) if (source or "").startswith(PREFIX) else ""
    return digest if is_digest(digest) else None


def attachments_by_digest(project: Project | int, digests: Collection[str]) -> dict[str, Attachment]:
    """The attachments of a project (or of the one with that key) by digest; unknown digests are omitted."""
    wanted = {digest for digest in digests if is_digest(digest)}
    rows = Attachment.objects.filter(project=project, sha256__in=wanted) if wanted else ()
    return {row.sha256: row for row in rows}


def named_digests(steps: Iterable[schema.Step]) -> set[str]:
    """The digests named in steps; their attachments may not exist."""
    named = (parse_digest(part.source) for step in steps for part in _parts(step))
    return {digest for digest in named if digest is not None}


def noting_digests(
    trajectories: Iterable[schema.Trajectory], digests: set[str]
) -> Iterator[schema.Trajectory]:
    """The trajectories as they are; the digests that they name are added as they pass."""
    for trajectory in trajectories:
        digests |= named_digests(trajectory.steps)
        yield trajectory


def claimed_sources(trajectory: schema.Trajectory) -> frozenset[str]:
    """All sources of a received trajectory that look like attachment names, valid or not."""
    sources = (part.source or "" for step in trajectory.steps for part in _parts(step))
    return frozenset(source for source in sources if source.startswith(PREFIX))


def missing_claims(project: Project, claims: Collection[str]) -> set[str]:
    """The claims without an attachment in the project."""
    digests = {claim: parse_digest(claim) for claim in claims}
    found = attachments_by_digest(project, {digest for digest in digests.values() if digest is not None})
    return {claim for claim, digest in digests.items() if digest not in found}


def detach_attachments(trajectory: schema.Trajectory) -> tuple[schema.Trajectory, list[Blob]]:
    """The trajectory with every data URL replaced by the name of its content, and what they held.

    Raises InvalidRecord for media that does not match its declared type (pictures.inspect_media).
    """
    if not any(_carries(part) for step in trajectory.steps for part in _parts(step)):
        return trajectory, []
    blobs: dict[str, Blob] = {}
    steps = tuple(_detach_step(step, blobs) for step in trajectory.steps)
    return replace(trajectory, steps=steps), list(blobs.values())


def store_attachments(project: Project, blobs: Sequence[Blob]) -> None:
    """Store new attachments. Rows belong to the caller's transaction; a file without a row does no harm."""
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
            media_type=blob.media.media_type,
            size=len(blob.data),
            width=blob.media.width,
            height=blob.media.height,
        )
        for blob in wanted.values()
    )


def file_name(project_id: int, digest: str) -> str:
    return storage_name(_FOLDER, project_id, digest[:2], digest)


def thumbnail_name(project_id: int, digest: str) -> str:
    """The name of the thumbnail, which is created when first requested."""
    return storage_name(_FOLDER, project_id, digest[:2], f"{digest}.small.webp")


def open_attachment(attachment: Attachment) -> BinaryIO:
    """Its file. Raises NotFound."""
    try:
        return artifacts.open_file(file_name(attachment.project_id, attachment.sha256))
    except NotFound:
        raise NotFound(MISSING) from None


def read_thumbnail(attachment: Attachment) -> tuple[bytes, str]:
    """The image, or a thumbnail if it is large, and its media type. Raises NotFound for other media."""
    if attachment.media_type not in IMAGE_TYPES:
        raise NotFound("This attachment is not an image.")
    small = thumbnail_name(attachment.project_id, attachment.sha256)
    if artifacts.is_stored(small):
        return artifacts.read_file(small), _SMALL
    data = read_attachment(attachment)
    if (
        attachment.width
        and attachment.height
        and fits_thumbnail(attachment.width, attachment.height, len(data))
    ):
        return data, attachment.media_type
    try:
        made = make_thumbnail(data, attachment.media_type)
    except InvalidRecord as error:
        raise NotFound(error.message) from None
    artifacts.store_content(made, small)
    return made, _SMALL


def read_attachment(attachment: Attachment) -> bytes:
    """Raises NotFound."""
    with open_attachment(attachment) as file:
        return file.read()


def last_image_digest(step: schema.Step) -> str | None:
    """The digest of the last image of a step."""
    named = [part.source for part in _parts(step) if part.type == "image" and part.media_type in IMAGE_TYPES]
    return next((digest for digest in map(parse_digest, reversed(named)) if digest), None)


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
        return part  # not base64: kept unchanged
    digest = sha256(data).hexdigest()
    if digest not in blobs:
        blobs[digest] = Blob(digest, inspect_media(data, match[1] or "application/octet-stream"), data)
    name = PREFIX + digest
    return replace(
        part, source=name, media_type=blobs[digest].media.media_type, extra=_replaced(part.extra, url, name)
    )


def _replaced(value: Any, old: str, new: str) -> Any:
    """`value` with every string equal to `old` replaced."""
    if isinstance(value, dict):
        return {key: _replaced(item, old, new) for key, item in value.items()}
    if isinstance(value, list):
        return [_replaced(item, old, new) for item in value]
    return new if value == old else value


def restore_attachments(project: Project, trajectory: schema.Trajectory) -> schema.Trajectory:
    """The trajectory with the bytes of its attachments put back as data URLs, for export.

    A source that names none of this project, or one whose file is missing, stays unchanged.
    """
    return _restored(trajectory, attachments_by_digest(project, named_digests(trajectory.steps)))


def restore_pictures(project: Project, trajectory: schema.Trajectory) -> schema.Trajectory:
    """The same of its pictures alone, for a model that sees."""
    return _restored(trajectory, _pictures_by_digest(project, named_digests(trajectory.steps)))


def write_pictures(
    project: Project, digests: Collection[str], folder: Path, *, check: Callable[[], None] = lambda: None
) -> tuple[int, list[str]]:
    """Write those that are pictures to the archive that a child process reads (`workers.schema.picture_archive`); how
    many, and the digests of those that cannot be read. check: called before each."""
    rows = _pictures_by_digest(project, digests)

    def files() -> Iterator[tuple[str, bytes]]:
        for digest, row in sorted(rows.items()):
            check()
            try:
                yield digest, read_attachment(row)
            except NotFound:
                missing.append(digest)

    missing: list[str] = []
    count, unread = write_picture_archive(folder / PICTURES, files())
    return count, sorted([*missing, *unread])


def _pictures_by_digest(project: Project, digests: Collection[str]) -> dict[str, Attachment]:
    rows = attachments_by_digest(project, digests)
    return {digest: row for digest, row in rows.items() if row.media_type in IMAGE_TYPES}


def _restored(trajectory: schema.Trajectory, found: Mapping[str, Attachment]) -> schema.Trajectory:
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
    attachment = found.get(parse_digest(part.source) or "")
    if attachment is None or part.source is None:
        return part
    try:
        encoded = base64.b64encode(read_attachment(attachment)).decode()
    except NotFound:
        return part
    url = f"data:{attachment.media_type};base64,{encoded}"
    return replace(
        part, source=url, media_type=attachment.media_type, extra=_replaced(part.extra, part.source, url)
    )
