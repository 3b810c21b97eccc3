"""A body over the limit is refused before it is kept, whether its length was declared or not."""

from collections.abc import Iterator

import pytest
from starlette.requests import Request
from starlette.responses import PlainTextResponse
from starlette.testclient import TestClient
from starlette.types import Receive, Scope, Send

from apps.core.http.body_limits import BodyLimit


async def size(scope: Scope, receive: Receive, send: Send) -> None:
    """Reads all of a body before it answers, as Django does."""
    body = await Request(scope, receive).body()
    await PlainTextResponse(str(len(body)))(scope, receive, send)


@pytest.fixture
def client() -> TestClient:
    return TestClient(BodyLimit(size, 1000, "TOUCHSTONE_MAX_UPLOAD_MB"))


def _in_chunks(count: int) -> Iterator[bytes]:
    for _ in range(count):
        yield b"x" * 100


@pytest.mark.parametrize("path", ["/api/v1/projects/desk/trajectories", "/p/desk/trajectories/upload/"])
def test_up_to_the_limit_it_passes_and_above_it_does_not(client: TestClient, path: str) -> None:
    assert client.post(path, content=b"x" * 1000).text == "1000"
    assert client.post(path, content=_in_chunks(10)).text == "1000"
    for content in (b"x" * 1001, _in_chunks(11)):
        answer = client.post(path, content=content)
        assert answer.status_code == 413
        assert "over the limit of 1000 bytes" in answer.text and "TOUCHSTONE_MAX_UPLOAD_MB" in answer.text
    is_api = path.startswith("/api/")
    assert answer.headers["content-type"].startswith("application/problem+json" if is_api else "text/plain")
    assert not is_api or answer.json()["limit"] == 1000


def test_reads_pass(client: TestClient) -> None:
    assert client.get("/login").text == "0"
