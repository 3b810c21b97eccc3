"""How much a request may send, held to before anything of it is kept."""

from starlette.responses import JSONResponse, PlainTextResponse
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from apps.core.http.client_disconnect import watch_client

_DIGITS = 18  # of a length that is looked at: of thousands Python makes no number


class _TooLarge(Exception):
    pass


class BodyLimit:
    """Answers 413, with the limit and how to raise it, to a body of more than `limit` bytes: declared or sent.

    Also notes when the client leaves (apps/core/http/client_disconnect.py)."""

    def __init__(self, app: ASGIApp, limit: int, setting: str) -> None:
        self.app, self.limit = app, limit
        self.detail = (
            f"The request's body is over the limit of {limit} bytes; send it in parts, or raise {setting}."
        )

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return
        declared = dict(scope["headers"]).get(b"content-length", b"").decode("latin-1")
        if declared.isdecimal() and (len(declared) > _DIGITS or int(declared) > self.limit):
            await self._refuse(scope, receive, send)
            return
        came, answered, gone = 0, False, watch_client()

        async def counted() -> Message:
            nonlocal came
            message = await receive()
            if message["type"] == "http.disconnect":
                gone.set()
            came += len(message.get("body", b""))
            if came > self.limit:
                raise _TooLarge
            return message

        async def noted(message: Message) -> None:
            nonlocal answered
            answered = True
            await send(message)

        try:
            await self.app(scope, counted, noted)
        except _TooLarge:
            if answered:
                raise
            await self._refuse(scope, receive, send)

    async def _refuse(self, scope: Scope, receive: Receive, send: Send) -> None:
        if not scope["path"].startswith("/api/"):
            await PlainTextResponse(self.detail, 413)(scope, receive, send)
            return
        document = {"type": "about:blank", "title": "Content Too Large", "status": 413, "detail": self.detail}
        await JSONResponse(document | {"limit": self.limit}, 413, media_type="application/problem+json")(
            scope, receive, send
        )
