"""Detection of the real type of images and video clips, and thumbnails.

Only the header of an image is read before it is stored; images that would need too much memory are rejected.
"""

import base64
import io
from dataclasses import dataclass

from PIL import Image, UnidentifiedImageError

from workers.errors import InvalidRecord
from workers.schema.patterns import TextPattern

IMAGE_TYPES = ("image/png", "image/jpeg", "image/gif", "image/webp")
VIDEO_TYPES = ("video/mp4", "video/webm")
MAX_PIXELS = 50_000_000
THUMBNAIL_PIXELS = 640  # pixels of the longer side
_SMALL_BYTES = 2 * 2**20  # smaller files are shown unchanged, animated or not
_DAMAGED = (UnidentifiedImageError, OSError, ValueError, SyntaxError, EOFError)
_OTHER = "application/octet-stream"
_TYPE = TextPattern(r"[\w.+-]{1,60}/[\w.+-]{1,60}")

Image.MAX_IMAGE_PIXELS = None  # ours is held to in _open; Pillow's own is a warning


@dataclass(frozen=True, slots=True)
class MediaInfo:
    """width, height: pixels; None for other media."""

    media_type: str
    width: int | None = None
    height: int | None = None


def image_data_url(content: str, *, pointer: str = "") -> str:
    """An image in base64 as a data URL of its real type. Raises InvalidRecord."""
    try:
        found = _by_magic(base64.b64decode(content, validate=True))
    except ValueError:  # of base64, or a character that is not ASCII
        found = None
    if found not in IMAGE_TYPES:
        known = ", ".join(kind.removeprefix("image/") for kind in IMAGE_TYPES)
        raise InvalidRecord(f"expected the bytes of an image ({known}) in base64.", pointer=pointer)
    return f"data:{found};base64,{content}"


def inspect_media(data: bytes, declared: str) -> MediaInfo:
    """Raises InvalidRecord for media that does not match its declared image or video type, is damaged or too large."""
    found = _by_magic(data)
    if found in VIDEO_TYPES:
        return MediaInfo(found)
    if found is None:
        if declared in (*IMAGE_TYPES, *VIDEO_TYPES):
            raise InvalidRecord(
                f"an attachment is declared as {declared}, but its content is not of that type."
            )
        return MediaInfo(declared if _TYPE.fullmatch(declared) else _OTHER)
    try:
        width, height = _open(data, found).size
    except _DAMAGED as error:
        raise InvalidRecord(f"an attachment of {found} is damaged: {_why(error)}.") from None
    return MediaInfo(found, width, height)


def fits_thumbnail(width: int, height: int, size: int) -> bool:
    return max(width, height) <= THUMBNAIL_PIXELS and size <= _SMALL_BYTES


def make_thumbnail(data: bytes, media_type: str) -> bytes:
    """The first frame as WebP, at most THUMBNAIL_PIXELS long. Raises InvalidRecord for a damaged image."""
    out = io.BytesIO()
    try:
        with _open(data, media_type) as picture:
            picture.draft("RGB", (THUMBNAIL_PIXELS, THUMBNAIL_PIXELS))
            picture.thumbnail((THUMBNAIL_PIXELS, THUMBNAIL_PIXELS))
            is_clear = picture.mode in ("LA", "PA", "RGBA") or "transparency" in picture.info
            picture.convert("RGBA" if is_clear else "RGB").save(out, "WEBP", quality=80)
    except _DAMAGED as error:
        raise InvalidRecord(f"the image is damaged: {_why(error)}.") from None
    return out.getvalue()


def _why(error: Exception) -> str:
    return "its header cannot be read" if isinstance(error, UnidentifiedImageError) else str(error)


def _open(data: bytes, media_type: str) -> Image.Image:
    """Raises InvalidRecord for one of too many pixels, and what Pillow raises."""
    picture = Image.open(io.BytesIO(data), formats=[media_type.removeprefix("image/").upper()])
    width, height = picture.size
    if width * height > MAX_PIXELS:
        most = f"the limit is {MAX_PIXELS // 10**6} million"
        raise InvalidRecord(f"an image has {width} x {height} pixels; {most}. Send a smaller image.")
    return picture


def _by_magic(data: bytes) -> str | None:
    if data.startswith(b"\x89PNG\r\n\x1a\n"):
        return "image/png"
    if data.startswith(b"\xff\xd8\xff"):
        return "image/jpeg"
    if data.startswith((b"GIF87a", b"GIF89a")):
        return "image/gif"
    if data[:4] == b"RIFF" and data[8:12] == b"WEBP":
        return "image/webp"
    if data[4:8] == b"ftyp":
        return "video/mp4"
    if data.startswith(b"\x1a\x45\xdf\xa3"):
        return "video/webm"
    return None
