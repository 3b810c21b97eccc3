"""Small picture files for tests, and hostile ones."""

import base64
import io
import struct
import zlib
from typing import Any

import numpy as np
from PIL import Image

RED, BLUE = (220, 30, 30), (30, 40, 220)


def coloured(colour: tuple[int, int, int], *, width: int = 60, height: int = 40) -> Image.Image:
    """A page with a block of the colour."""
    page = Image.new("RGB", (width, height), (255, 255, 255))
    page.paste(colour, (width // 6, height // 6, width // 2, height // 2))
    return page


def file_of(image: Image.Image, format: str = "PNG", **options: Any) -> bytes:
    out = io.BytesIO()
    image.save(out, format, **options)
    return out.getvalue()


def data_url(data: bytes, media_type: str = "image/png") -> str:
    return f"data:{media_type};base64,{base64.b64encode(data).decode()}"


def png_bomb(width: int, height: int) -> bytes:
    """A PNG whose header says more than it has."""

    def chunk(kind: bytes, data: bytes) -> bytes:
        return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))

    header = struct.pack(">IIBBBBB", width, height, 8, 2, 0, 0, 0)
    parts = (chunk(b"IHDR", header), chunk(b"IDAT", zlib.compress(b"")), chunk(b"IEND", b""))
    return b"\x89PNG\r\n\x1a\n" + b"".join(parts)


def noise(seed: int, width: int = 64, height: int = 48) -> Image.Image:
    pixels = np.random.default_rng(seed).integers(0, 256, (height, width, 3), dtype=np.uint8)
    return Image.fromarray(pixels)
