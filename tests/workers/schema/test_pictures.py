"""Pictures in the one form that models read, whatever file they came in; hostile files are refused in words."""

import zipfile
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from tests.picture_files import BLUE, RED, coloured, data_url, file_of, noise, png_bomb
from workers.errors import InvalidRecord, RewardError
from workers.schema.picture_archive import PICTURES, PictureArchive, write_pictures
from workers.schema.pictures import (
    LONGEST,
    MAX_BYTES,
    decode_picture,
    encode_picture,
    hashed_name,
    is_sent,
    picture_bytes,
    picture_size,
)


def test_the_form_of_a_picture_is_its_own_form() -> None:
    for image in (noise(1), noise(2, 2000, 500), coloured(RED, width=LONGEST, height=3)):
        first = decode_picture(file_of(image))
        assert max(first.shape[:2]) <= LONGEST
        assert np.array_equal(decode_picture(encode_picture(first)), first)
    assert decode_picture(file_of(noise(2, 2000, 500))).shape == (192, LONGEST, 3)


def test_orientation_transparency_modes_and_frames() -> None:
    image = coloured(RED)
    exif = Image.Exif()
    exif[0x0112] = 6  # turned by a quarter
    turned = decode_picture(file_of(image, "JPEG", exif=exif, quality=95))
    assert turned.shape == (60, 40, 3)
    assert np.abs(turned.astype(int) - np.asarray(image.rotate(-90, expand=True)).astype(int)).mean() < 4
    clear = Image.new("RGBA", (8, 8), (0, 0, 0, 0))
    assert (decode_picture(file_of(clear)) == 255).all()
    frames = file_of(coloured(RED), "GIF", save_all=True, append_images=[coloured(BLUE)])
    assert np.array_equal(decode_picture(frames), decode_picture(file_of(coloured(RED), "GIF")))
    grey = np.linspace(0, 65535, 64 * 64).reshape(64, 64).astype(np.uint16)
    assert abs(float(decode_picture(file_of(Image.fromarray(grey))).mean()) - 127) < 2
    inked = file_of(image.convert("CMYK"), "JPEG", quality=95)
    assert np.abs(decode_picture(inked).astype(int) - np.asarray(image).astype(int)).mean() < 8
    palette = file_of(image.convert("P"))
    assert np.array_equal(decode_picture(palette), np.asarray(image.convert("P").convert("RGB")))


def test_what_is_declared_does_not_matter_only_what_it_is() -> None:
    file = picture_bytes(data_url(file_of(coloured(RED), "WEBP", lossless=True), "image/jpeg"))
    assert np.array_equal(decode_picture(file.data), np.asarray(coloured(RED)))


@pytest.mark.parametrize(
    ("data", "told"),
    [
        (b"<svg onload=alert(1)/>", "cannot be read as any of png, jpeg, gif, webp"),
        (b"\x89PNG\r\n\x1a\n" + b"x" * 50, "cannot be read"),
        (png_bomb(60_000, 60_000), "60000 x 60000 pixels, and the limit is 50 million"),
        (png_bomb(40, 30), "damaged"),
        (file_of(noise(3), "JPEG")[:1500], "damaged"),
        (b"%PDF-1.7", "cannot be read"),
        (b"II*\x00" + b"\x00" * 40, "cannot be read"),  # TIFF, which is none of the four
    ],
)
def test_what_is_no_picture_is_refused(data: bytes, told: str) -> None:
    with pytest.raises(InvalidRecord, match=told):
        decode_picture(data)


def test_sizes_and_bytes_are_bounded_before_anything_is_decoded() -> None:
    assert picture_size(file_of(noise(1))) == (64, 48)
    with pytest.raises(InvalidRecord, match="limit is 50 million"):
        picture_size(png_bomb(10_000, 10_000))
    with pytest.raises(InvalidRecord, match="more than 20 MB"):
        picture_bytes("data:image/png;base64," + "A" * (MAX_BYTES * 4 // 3 + 8))
    with pytest.raises(InvalidRecord, match="not base64"):
        picture_bytes("data:image/png;base64,%%%")


def test_which_sources_hold_a_picture() -> None:
    assert is_sent("data:image/png;base64,AAAA")
    assert not any(
        map(is_sent, ("https://example.org/a.png", "data:image/png,abc", "", None, "file:///a.png"))
    )
    assert hashed_name("sha256:" + "ab" * 32) == "ab" * 32
    assert hashed_name("sha256:00") is None


def test_an_archive_holds_each_picture_by_the_hash_of_its_file(tmp_path: Path) -> None:
    red, blue = (picture_bytes(data_url(file_of(coloured(colour)))) for colour in (RED, BLUE))
    found = write_pictures(
        tmp_path / PICTURES, [(red.digest, red.data), (blue.digest, blue.data), ("0" * 64, b"no picture")]
    )
    assert found == (2, ["0" * 64])
    archive = PictureArchive(tmp_path / PICTURES)
    assert len(archive) == 2
    assert red.digest in archive and "0" * 64 not in archive
    assert np.array_equal(archive.read(blue.digest), np.asarray(coloured(BLUE)))
    before = (tmp_path / PICTURES).read_bytes()
    write_pictures(tmp_path / PICTURES, [(red.digest, red.data), (blue.digest, blue.data)])
    assert (tmp_path / PICTURES).read_bytes() == before


def test_no_archive_without_pictures_and_damaged_ones_are_told(tmp_path: Path) -> None:
    assert write_pictures(tmp_path / PICTURES, []) == (0, [])
    assert not (tmp_path / PICTURES).exists()
    (tmp_path / PICTURES).write_bytes(b"no archive")
    with pytest.raises(RewardError, match="is damaged"):
        PictureArchive(tmp_path / PICTURES)
    with zipfile.ZipFile(tmp_path / PICTURES, "w") as archive:
        archive.writestr("a.png", file_of(coloured(RED)))
    data = bytearray((tmp_path / PICTURES).read_bytes())
    data[60] ^= 1
    (tmp_path / PICTURES).write_bytes(bytes(data))
    with pytest.raises(RewardError, match="is damaged"):
        PictureArchive(tmp_path / PICTURES).read("a")
