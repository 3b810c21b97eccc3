"""Pictures as models read them: decoded safely from what a trajectory has, and scaled to a bounded size. No torch.

A picture has one form for training and serving, whatever file it came in: its first frame, turned as its EXIF
orientation says, on white where it is transparent, RGB, with at most LONGEST pixels on its longer side. The form of a
picture that has this form already is itself.
"""

import base64
import io
import warnings
from collections.abc import Iterator
from dataclasses import dataclass
from hashlib import sha256

import numpy as np
from numpy.typing import NDArray
from PIL import Image, ImageOps

from workers.errors import InvalidRecord
from workers.schema.patterns import TextPattern
from workers.schema.records import Part, Step

Pixels = NDArray[np.uint8]  # [height, width, 3], RGB
LONGEST = 768
MAX_BYTES = 20 * 2**20
MAX_PIXELS = 50_000_000
FORMATS = {"image/png": "PNG", "image/jpeg": "JPEG", "image/gif": "GIF", "image/webp": "WEBP"}
_DATA_URL = TextPattern(r"data:([\w.+-]+/[\w.+-]+)?(?:;[\w.+=-]+)*;base64")
_HASHED = TextPattern(r"sha256:[0-9a-f]{64}")
_WHITE = (255, 255, 255)
_QUALITIES = (85, 60, 35)  # of a JPEG

Image.MAX_IMAGE_PIXELS = None  # ours is held to in `picture_size`; Pillow's own is a warning


@dataclass(frozen=True, slots=True)
class PictureBytes:
    """digest: SHA-256 of the file, as hexadecimal digits."""

    digest: str
    data: bytes


def hashed_name(source: str | None) -> str | None:
    """The digest of a source `sha256:...`; None for any other."""
    return source.removeprefix("sha256:") if source and _HASHED.fullmatch(source) else None


def is_sent(source: str | None) -> bool:
    """Whether the source holds the picture, as a data URL in base64. What an address names is never fetched."""
    return bool(source) and _DATA_URL.fullmatch(str(source)[:200].partition(",")[0]) is not None


def picture_bytes(source: str) -> PictureBytes:
    """The file that a data URL holds. Raises InvalidRecord where it is no base64, or too large."""
    content = source.partition(",")[2]
    if len(content) > MAX_BYTES * 4 // 3 + 4:
        raise InvalidRecord(
            f"a picture has more than {MAX_BYTES // 2**20} MB; send it as JPEG, or scaled down to {LONGEST} pixels, "
            "which is all that a model reads."
        )
    try:
        data = base64.b64decode(content, validate=True)
    except ValueError:  # of base64, or a character that is not ASCII
        raise InvalidRecord("the data URL of a picture is not base64; encode the file's bytes.") from None
    return PictureBytes(sha256(data).hexdigest(), data)


def picture_places(step: Step) -> Iterator[tuple[str, tuple[Part, ...]]]:
    """The parts of a step that may have pictures, each with its source, in the order of its segments."""
    yield step.source, step.message
    for result in step.observation:
        yield "environment", result.content


def picture_size(data: bytes) -> tuple[int, int]:
    """Width and height in pixels, by the header alone. Raises InvalidRecord for what is no picture, or too large."""
    with _opened(data) as picture:
        return picture.size


def decode_picture(data: bytes) -> Pixels:
    """In the form that models read. Raises InvalidRecord for what is no picture, is damaged or too large."""
    try:
        with _opened(data) as picture:
            picture.draft(
                "RGB", (LONGEST, LONGEST)
            )  # JPEG: decoded at an eighth, a quarter or half of its size
            return np.asarray(_in_form(picture))
    except InvalidRecord:
        raise
    except (OSError, ValueError, SyntaxError, EOFError, ArithmeticError, MemoryError) as error:
        raise InvalidRecord(f"a picture is damaged: {error}. Send it again, as PNG or JPEG.") from None


def encode_picture(pixels: Pixels) -> bytes:
    """As PNG, without loss."""
    out = io.BytesIO()
    Image.fromarray(pixels).save(out, "PNG", compress_level=6)
    return out.getvalue()


def encode_jpeg(pixels: Pixels, longest: int, most_bytes: int) -> bytes:
    """As JPEG without metadata, at most `longest` pixels on the longer side and `most_bytes` bytes: what is larger is
    encoded at a lower quality, then at half the size."""
    picture = scaled_down(Image.fromarray(pixels), longest)
    while True:
        for quality in _QUALITIES:
            out = io.BytesIO()
            picture.save(out, "JPEG", quality=quality)
            if out.tell() <= most_bytes or max(picture.size) == 1:
                return out.getvalue()
        picture = scaled_down(picture, max(max(picture.size) // 2, 1))


def fitted(pixels: Pixels, side: int) -> Pixels:
    """[side, side, 3]: all of the picture, not cropped, as encoders with a fixed input read it."""
    return np.asarray(Image.fromarray(pixels).resize((side, side), Image.Resampling.BOX, reducing_gap=None))


def scaled_down(picture: Image.Image, longest: int) -> Image.Image:
    """The same where its longer side has no more pixels."""
    longer = max(picture.size)
    if longer <= longest:
        return picture
    width, height = (max(1, round(size * longest / longer)) for size in picture.size)
    return picture.resize((width, height), Image.Resampling.BOX)


def _opened(data: bytes) -> Image.Image:
    """By its content; what it was declared as does not matter, since nothing but its pixels is read."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # about metadata, which is not read
            picture = Image.open(io.BytesIO(data), formats=[*FORMATS.values()])
    except (OSError, ValueError, SyntaxError, EOFError) as error:
        known = ", ".join(kind.removeprefix("image/") for kind in FORMATS)
        raise InvalidRecord(
            f"a picture cannot be read as any of {known}; send the bytes of such a file in base64."
        ) from error
    width, height = picture.size
    if width * height > MAX_PIXELS:
        raise InvalidRecord(
            f"a picture has {width} x {height} pixels, and the limit is {MAX_PIXELS // 10**6} million; scale it down "
            f"to {LONGEST}, which is all that a model reads."
        )
    return picture


def _in_form(picture: Image.Image) -> Image.Image:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        picture.seek(0)
        shown = ImageOps.exif_transpose(picture)
        if shown.mode in ("LA", "PA", "RGBA", "La", "RGBa") or "transparency" in shown.info:
            clear = shown.convert("RGBA")
            shown = Image.new("RGB", clear.size, _WHITE)
            shown.paste(clear, mask=clear.getchannel("A"))
        elif shown.mode.startswith(
            "I;16"
        ):  # Pillow cuts what is above 8 bits off, and the picture is then white
            shown = Image.fromarray((np.asarray(shown) >> 8).astype(np.uint8)).convert("RGB")
        else:
            shown = shown.convert("RGB")
    return scaled_down(shown, LONGEST)
