"""Screenshots: what they are, where they come from, and where the agent clicked on them."""

import base64
import io
import json
import struct
import zlib
from typing import Any

import pytest
from django.core.files.storage import storages
from django.test import Client
from PIL import Image

from apps.accounts.models import Project, Role
from apps.trajectories.attachments import thumbnail_name
from apps.trajectories.clicks import ClickMark, click_marks
from apps.trajectories.models import Attachment, Trajectory
from apps.trajectories.pictures import inspect_media, make_thumbnail
from apps.trajectories.services import ImportResult, import_trajectories
from tests.factories import make_member
from tests.trajectories.test_archive import dumped
from workers.errors import InvalidRecord
from workers.schema import ObservationResult, ToolCall


def picture(
    width: int = 1200, height: int = 800, format: str = "PNG", mode: str = "RGB", **options: Any
) -> bytes:
    out = io.BytesIO()
    Image.new(mode, (width, height)).save(out, format, **options)
    return out.getvalue()


def bomb(width: int, height: int) -> bytes:
    """A PNG whose header says more than it has."""
    header = struct.pack(">IIBBBBB", width, height, 8, 2, 0, 0, 0)

    def chunk(kind: bytes, data: bytes) -> bytes:
        return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))

    return (
        b"\x89PNG\r\n\x1a\n"
        + chunk(b"IHDR", header)
        + chunk(b"IDAT", zlib.compress(b""))
        + chunk(b"IEND", b"")
    )


@pytest.mark.parametrize(
    ("data", "declared", "found"),
    [
        (picture(3, 2), "image/png", ("image/png", 3, 2)),
        (picture(3, 2, "JPEG"), "image/png", ("image/jpeg", 3, 2)),
        (picture(3, 2, "GIF"), "text/html", ("image/gif", 3, 2)),
        (picture(3, 2, "WEBP"), "application/octet-stream", ("image/webp", 3, 2)),
        (b"\x00\x00\x00\x18ftypmp42", "video/mp4", ("video/mp4", None, None)),
        (b"\x1a\x45\xdf\xa3", "audio/webm", ("video/webm", None, None)),
        (b"<svg/>", "image/svg+xml", ("image/svg+xml", None, None)),
        (b"%PDF", "application/pdf", ("application/pdf", None, None)),
        (b"MZ", "no type; <script>", ("application/octet-stream", None, None)),
    ],
)
def test_what_it_is(data: bytes, declared: str, found: tuple[str, int | None, int | None]) -> None:
    seen = inspect_media(data, declared)
    assert (seen.media_type, seen.width, seen.height) == found


@pytest.mark.parametrize(
    ("data", "declared", "said"),
    [
        (b"<script>alert(1)</script>", "image/png", "is declared as image/png, but its content is not"),
        (b"MZ", "video/mp4", "is declared as video/mp4"),
        (b"\x89PNG\r\n\x1a\n" + b"x" * 50, "image/png", "is damaged"),
        (bomb(100_000, 100_000), "image/png", "100000 x 100000 pixels; the limit is 50 million"),
        (bomb(2**31 - 1, 2**31 - 1), "image/png", "pixels; the limit is 50 million"),
        (
            b"GIF89a" + struct.pack("<HH", 65535, 65535) + b"\x00" * 20,
            "image/gif",
            "is damaged: its header",
        ),
    ],
)
def test_what_is_not_taken(data: bytes, declared: str, said: str) -> None:
    with pytest.raises(InvalidRecord, match=said):
        inspect_media(data, declared)


@pytest.mark.parametrize(
    ("format", "mode", "options"),
    [
        ("PNG", "RGBA", {}),
        ("PNG", "P", {}),
        ("PNG", "I;16", {}),
        ("JPEG", "CMYK", {}),
        ("GIF", "P", {"transparency": 0}),
    ],
)
def test_a_smaller_one(format: str, mode: str, options: dict[str, Any]) -> None:
    data = picture(1200, 800, format, mode, **options)
    assert Image.open(io.BytesIO(make_thumbnail(data, inspect_media(data, "").media_type))).size == (640, 427)


def test_a_picture_whose_end_is_missing_is_no_error_of_ours() -> None:
    with pytest.raises(InvalidRecord, match="damaged"):
        make_thumbnail(bomb(100, 100), "image/png")


def bring(project: Project, data: bytes, **options: Any) -> ImportResult:
    return import_trajectories(project=project, stream=io.BytesIO(data), by=None, **options)


def saw(url: str, **call: Any) -> dict[str, Any]:
    """A screenshot, then a call."""
    content = [{"type": "text", "text": "Buy it."}, {"type": "image_url", "image_url": {"url": url}}]
    function = {"name": "computer", "arguments": json.dumps(call)}
    said = {
        "role": "assistant",
        "content": None,
        "tool_calls": [{"id": "c", "type": "function", "function": function}],
    }
    return {"task": "t", "messages": [{"role": "user", "content": content}, said]}


def data_url(data: bytes, media_type: str = "image/png") -> str:
    return f"data:{media_type};base64,{base64.b64encode(data).decode()}"


def test_a_picture_that_lies_refuses_its_trajectory(project: Project) -> None:
    bad, good = saw(data_url(b"<html>")), saw(data_url(picture(9, 9)))
    result = bring(project, dumped([bad, good]), keep_good=True)
    assert (result.created, Attachment.objects.count()) == (1, 1)
    assert "is declared as image/png" in result.rejected[0]["message"]


def test_the_click_is_drawn_on_what_was_seen(project: Project, client: Client) -> None:
    client.force_login(make_member(project, "ida@example.org", Role.RESEARCHER))
    bring(project, dumped(saw(data_url(picture()), action="left_click", coordinate=[300, 200])))
    page = client.get(f"/p/desk/trajectories/{Trajectory.objects.get().pk}/").content.decode()
    attachment = Attachment.objects.get()
    url = f"/p/desk/trajectories/attachments/{attachment.sha256}/small/"
    assert '<svg viewBox="0 0 1200 800"' in page
    assert f'<image href="{url}" width="1200" height="800"/>' in page
    assert '<circle class="picture-mark" cx="300" cy="200" r="20"/>' in page
    for _ in range(2):  # made, then kept
        shown = client.get(url)
        assert Image.open(io.BytesIO(shown.content)).size == (640, 427)
        assert (shown["Content-Type"], shown["X-Content-Type-Options"]) == ("image/webp", "nosniff")
        assert "sandbox" in shown["Content-Security-Policy"]
        assert storages["artifacts"].exists(thumbnail_name(project.pk, attachment.sha256))


def test_what_is_small_is_shown_as_it_is(project: Project, client: Client) -> None:
    client.force_login(make_member(project, "ida@example.org", Role.RESEARCHER))
    moving = picture(30, 20, "GIF", "P", save_all=True, append_images=[Image.new("P", (30, 20), 1)])
    bring(project, dumped([saw(data_url(moving)), saw(data_url(b"\x00\x00\x00\x18ftypmp42", "video/mp4"))]))
    row = Attachment.objects.get(media_type="image/gif")
    shown = client.get(f"/p/desk/trajectories/attachments/{row.sha256}/small/")
    assert (shown.content, shown["Content-Type"]) == (moving, "image/gif")
    clip = Attachment.objects.get(media_type="video/mp4")
    assert client.get(f"/p/desk/trajectories/attachments/{clip.sha256}/small/").status_code == 404
    pages = [
        client.get(f"/p/desk/trajectories/{row.pk}/").content.decode() for row in Trajectory.objects.all()
    ]
    assert sum("<video" in page for page in pages) == 1
    assert sum('<img src="/p/desk/trajectories/attachments' in page for page in pages) == 1


BOXES = (
    ObservationResult(extra={"boxes": {"a51": [10, 20, 30, 40], "far": [90, 90, 30, 30], "odd": ["x"]}}),
)


@pytest.mark.parametrize(
    ("name", "arguments", "mark"),
    [
        ("computer", {"action": "left_click", "coordinate": [30, 40]}, ClickMark(30, 40)),
        ("computer", {"type": "click", "x": 1, "y": 2}, ClickMark(1, 2)),
        ("tap", {"point": [0.5, 0.25]}, ClickMark(50, 25)),
        ("tap", {"x": 1, "y": 1}, ClickMark(1, 1)),
        ("mouse_click", "30, 40", ClickMark(30, 40)),
        ("mouse_click", "x=30.5, y=40, button='left'", ClickMark(30.5, 40)),
        ("code", {"code": "import pyautogui\npyautogui.doubleClick(x=3, y=4)"}, ClickMark(3, 4)),
        ("click", "'a51'", ClickMark(10, 20, 30, 40)),
        ("fill", "bid='a51', 'text'", ClickMark(10, 20, 30, 40)),
        ("click", {"bid": "a51"}, ClickMark(10, 20, 30, 40)),
        ("click", {"bbox": [1, 2, 3, 4]}, ClickMark(1, 2, 3, 4)),
        ("click", {"bid": "far"}, None),
        ("click", {"bid": "odd"}, None),
        ("click", {"bid": "none"}, None),
        ("click", {"coordinate": [300, 40]}, None),
        ("click", {"coordinate": [-1, 40]}, None),
        ("click", {"coordinate": ["1", True]}, None),
        ("scroll", "0, 200", None),
        ("send_msg", "'Hello, 3, 4'", None),
        ("plot", {"x": [1, 2], "y": [3, 4]}, None),
    ],
)
def test_where_an_agent_acts(name: str, arguments: Any, mark: ClickMark | None) -> None:
    found = click_marks([ToolCall(name=name, arguments=arguments)], BOXES, (100, 100))
    assert found == ([mark] if mark else [])
