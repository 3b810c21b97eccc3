"""Sessions in a table of our own, which says whose they are: they end when idle, at a day set at sign-in, or by hand.

The end stands in the session itself and in its row, so that Django's own store enforces it: a row past its end is not
read. Fragments that a page fetches automatically are no sign that someone is there (`UserSessionMiddleware`).
"""

from collections.abc import Callable
from copy import deepcopy
from datetime import datetime, timedelta
from typing import Any, NamedTuple, cast

from django.conf import settings
from django.contrib.auth import SESSION_KEY
from django.contrib.sessions.backends import db
from django.contrib.sessions.backends.base import UpdateError
from django.db import DatabaseError
from django.http import HttpRequest, HttpResponse
from django.utils import timezone

from apps.accounts.audit_trail import record_audit
from apps.accounts.models import User, UserSession
from apps.accounts.selectors import hash_of
from apps.core.database.outage import is_read_only, met_outage, renew_connections
from apps.core.http.client_address import client_address, parse_address

_BEGAN, _SEEN, _ADDRESS, _AGENT = "_began", "_seen", "_address", "_agent"
_MARKS = {_BEGAN, _SEEN, _ADDRESS, _AGENT, "_session_expiry"}
_TOUCH_SECONDS = 60  # a row is written at most so often for being seen


class SessionStore(db.SessionStore):
    untouched: dict[str, Any] | None = None  # what else was in it when it was noted to be in use

    def save(self, must_create: bool = False) -> None:
        """Where the database takes no changes, who only reads is not turned away for being seen."""
        try:
            super().save(must_create)
        except (UpdateError, DatabaseError) as error:
            outage = met_outage(error)
            if outage is None or not is_read_only(outage) or self.untouched != self.without_marks():
                raise
            renew_connections(outage)

    def without_marks(self) -> dict[str, Any]:
        return {name: value for name, value in self.items() if name not in _MARKS}

    @classmethod
    def get_model_class(cls) -> type[UserSession]:
        return UserSession

    def create_model_instance(self, data: dict[str, Any]) -> UserSession:
        row = cast(UserSession, super().create_model_instance(data))
        row.user_id = int(data[SESSION_KEY]) if SESSION_KEY in data else None
        row.began_at, row.seen_at = _time(data.get(_BEGAN)), _time(data.get(_SEEN))
        row.address, row.agent = data.get(_ADDRESS) or None, data.get(_AGENT, "")
        return row


class UserSessionMiddleware:
    """Notes who is seen where, and moves the end of the session on. After AuthenticationMiddleware."""

    def __init__(self, get_response: Callable[[HttpRequest], HttpResponse]) -> None:
        self.get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponse:
        was = request.session.get(SESSION_KEY)
        if was is not None and not _is_fetched_by_page(request):
            touch(request)
        response = self.get_response(request)
        if request.session.get(SESSION_KEY) not in (None, was):
            touch(request, starts=True)
        return response


def touch(request: HttpRequest, *, starts: bool = False) -> None:
    """Note that the session is in use. starts: someone has just signed in."""
    session, now = cast(SessionStore, request.session), timezone.now()
    if not session.modified and not starts:
        session.untouched = deepcopy(session.without_marks())
    if starts or _BEGAN not in session:
        session[_BEGAN] = now.isoformat()
    seen = _time(session.get(_SEEN))
    address = _address(request)
    recently = seen is not None and now - seen < timedelta(seconds=_TOUCH_SECONDS)
    if recently and not starts and session.get(_ADDRESS) == address:
        return
    began = _time(session[_BEGAN]) or now
    session[_SEEN], session[_ADDRESS] = now.isoformat(), address
    session[_AGENT] = request.headers.get("User-Agent", "").replace("\0", "")[:300]
    session.set_expiry(
        min(
            now + timedelta(hours=settings.SESSION_IDLE_HOURS),
            began + timedelta(days=settings.SESSION_DAYS),
        )
    )


class ShownSession(NamedTuple):
    """A session as its owner sees it. mark: names it in a form, without being it."""

    row: UserSession
    mark: str
    device: str
    is_this: bool


def sessions_of(user: User, here: str | None) -> list[ShownSession]:
    """The sessions of a user that have not ended, the latest seen first. here: the key of the one that asks."""
    rows = UserSession.objects.filter(user=user, expire_date__gt=timezone.now())
    return [
        ShownSession(row, mark_of(row.session_key), device_of(row.agent), row.session_key == here)
        for row in rows.order_by("-seen_at")[:200]
    ]


def mark_of(session_key: str) -> str:
    return hash_of(f"session mark {session_key}")[:32]


def end_sessions(
    *, user: User, by: User | str | None, but: str | None = None, only: str | None = None
) -> int:
    """End the user's sessions: all, all but one, or only one (by key). How many there were."""
    rows = UserSession.objects.filter(user=user)
    if only is not None:
        rows = rows.filter(session_key=only)
    if but is not None:
        rows = rows.exclude(session_key=but)
    count, _ = rows.delete()
    if count:
        record_audit(
            project=None, actor=by, verb="sessions.ended", target=user.email, data={"sessions": count}
        )
    return count


def forget_ended_sessions() -> None:
    UserSession.objects.filter(expire_date__lt=timezone.now()).delete()


def device_of(agent: str) -> str:
    """Browser and system in words, for people to know their own devices by; nothing rests on it."""
    browsers = {
        "Edg/": "Edge",
        "OPR/": "Opera",
        "Firefox/": "Firefox",
        "Chrome/": "Chrome",
        "Safari/": "Safari",
    }
    systems = {
        "Android": "Android",
        "iPhone": "iPhone",
        "iPad": "iPad",
        "Windows": "Windows",
        "Mac OS": "macOS",
        "Linux": "Linux",
    }
    browser = next((name for mark, name in browsers.items() if mark in agent), "")
    system = next((name for mark, name in systems.items() if mark in agent), "")
    return " on ".join(part for part in (browser, system) if part) or "Unknown device"


def _is_fetched_by_page(request: HttpRequest) -> bool:
    return request.method == "GET" and request.headers.get("HX-Request") == "true"


def _address(request: HttpRequest) -> str:
    parsed = parse_address(client_address(request))
    return str(parsed) if parsed is not None else ""


def _time(text: str | None) -> datetime | None:
    return datetime.fromisoformat(text) if text else None
