"""The documentation site at `/docs/`: static files that `make docs` writes, for everyone who reaches the server."""

import base64
import hashlib
from functools import cache
from pathlib import Path

from starlette.middleware.gzip import GZipMiddleware
from starlette.responses import PlainTextResponse
from starlette.staticfiles import StaticFiles
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from workers.schema.patterns import TextPattern

_INLINE = TextPattern(r"(?s)<script>(.*?)</script>")
_ABSENT = "This installation has no documentation site. Run `make docs` in the checkout it runs from, then restart it."


@cache
def _policy(folder: Path) -> bytes:
    """What pages of the site may load: its own files, and the inline scripts of its theme by their hashes."""
    scripts = set(_INLINE.findall((folder / "index.html").read_text()))
    hashes = sorted(base64.b64encode(hashlib.sha256(script.encode()).digest()).decode() for script in scripts)
    allowed = " ".join(f"'sha256-{value}'" for value in hashes)
    return (
        f"default-src 'none'; script-src 'self' {allowed}; style-src 'self' 'unsafe-inline'; img-src 'self' data:; "
        "connect-src 'self'; font-src 'self'; base-uri 'none'; form-action 'self'; frame-ancestors 'none'"
    ).encode()


class Documentation:
    """Serves `folder`; where it holds no site, every path is answered 404 with what to do."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._files: ASGIApp | None = None

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if not (self.folder / "index.html").is_file():
            await PlainTextResponse(_ABSENT, 404)(scope, receive, send)
            return
        if self._files is None:
            self._files = GZipMiddleware(StaticFiles(directory=self.folder, html=True), minimum_size=1000)
        await self._files(scope, receive, _with_policy(send, _policy(self.folder)))


def _with_policy(send: Send, policy: bytes) -> Send:
    async def sending(message: Message) -> None:
        if message["type"] == "http.response.start":
            headers = [
                *message.get("headers", ()),
                (b"content-security-policy", policy),
                (b"cache-control", b"no-cache"),
            ]
            message = {**message, "headers": headers}
        await send(message)

    return sending
