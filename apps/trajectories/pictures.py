"""What pictures and clips really are, whatever they are said to be; and small ones to look through.

Of a picture only its header is read before it is kept; what would fill the memory when it is shown is refused.
"""

import io
from dataclasses import dataclass

from PIL import Image, UnidentifiedImageError

from workers.errors import InvalidRecord
from workers.schema.patterns import TextPattern

RASTER = ("image/png", "image/jpeg", "image/gif", "image/webp")
CLIPS = ("video/mp4", "video/webm")
MOST_PIXELS = 50_000_000
SMALL = 640  # pixels of the longer side of a small picture
_SMALL_BYTES = 2 * 2**20  # what is as small as this is shown as it is, moving or not
_DAMAGED = (UnidentifiedImageError, OSError, ValueError, SyntaxError, EOFError)
_OTHER = "application/octet-stream"
_TYPE = TextPattern(r"[\w.+-]{1,60}/[\w.+-]{1,60}")

Image.MAX_IMAGE_PIXELS = None  # ours is held to in _open; Pillow's own is a warning


@dataclass(frozen=True, slots=True)
class Look:
    """width, height: pixels; None of what is no picture."""

    media_type: str
    width: int | None = None
    height: int | None = None


def look(data: bytes, declared: str) -> Look:
    """Raises InvalidRecord for what is said to be a picture or clip and is none, is damaged, or is too large."""
    found = _by_magic(data)
    if found in CLIPS:
        return Look(found)
    if found is None:
        if declared in (*RASTER, *CLIPS):
            raise InvalidRecord(f"an attachment says that it is {declared}, and its content is not.")
        return Look(declared if _TYPE.fullmatch(declared) else _OTHER)
    try:
        width, height = _open(data, found).size
    except _DAMAGED as error:
        raise InvalidRecord(f"an attachment of {found} is damaged: {_why(error)}.") from None
    return Look(found, width, height)


def is_small(width: int, height: int, size: int) -> bool:
    return max(width, height) <= SMALL and size <= _SMALL_BYTES


def smaller(data: bytes, media_type: str) -> bytes:
    """Its first frame, at most SMALL pixels long, as WebP. Raises InvalidRecord for one that is damaged."""
    out = io.BytesIO()
    try:
        with _open(data, media_type) as picture:
            picture.draft("RGB", (SMALL, SMALL))
            picture.thumbnail((SMALL, SMALL))
            is_clear = picture.mode in ("LA", "PA", "RGBA") or "transparency" in picture.info
            picture.convert("RGBA" if is_clear else "RGB").save(out, "WEBP", quality=80)
    except _DAMAGED as error:
        raise InvalidRecord(f"the picture is damaged: {_why(error)}.") from None
    return out.getvalue()


def _why(error: Exception) -> str:
    return "its beginning cannot be read" if isinstance(error, UnidentifiedImageError) else str(error)


def _open(data: bytes, media_type: str) -> Image.Image:
    """Raises InvalidRecord for one of too many pixels, and what Pillow raises."""
    picture = Image.open(io.BytesIO(data), formats=[media_type.removeprefix("image/").upper()])
    width, height = picture.size
    if width * height > MOST_PIXELS:
        most = f"at most {MOST_PIXELS // 10**6} million are shown"
        raise InvalidRecord(f"a picture has {width} x {height} pixels; {most}. Send it smaller.")
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
