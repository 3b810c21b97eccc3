"""Guessing is counted and slowed down: passwords, second factors, links, keys.

A failure counts for a subject: a name from an address, the name, the address, a device. The first few are free; after
them every further one closes the subject for twice as long, up to a quarter of an hour. An attempt is counted before
the secret is looked at, so that a hundred at the same time are a hundred, and taken back when it was right.

No one can lock out someone else for long by guessing at their name: a browser they signed in with before has a signed
cookie and is counted on its own (OWASP, "Slow down online guessing attacks with device cookies"), and an address they
are signed in from does not wait for what others do to their name.
"""

import hashlib
import secrets
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import NamedTuple

from django.conf import settings
from django.core import signing
from django.db import connection
from django.http import HttpRequest, HttpResponse
from django.utils import timezone

from apps.accounts.models import GuessCounter, User, UserSession
from apps.core.errors import TooManyRequests
from apps.core.http.client_address import client_address, parse_address

CAP_SECONDS = 900
FORGET = timedelta(hours=24)  # a counter that nothing was added to for so long begins again
DEVICE_COOKIE = "touchstone_device"
_DEVICE_SALT = "touchstone.device"
_DEVICE_SECONDS = 365 * 86400


class Subject(NamedTuple):
    """Whom failures are counted for. kind: of LIMITS. resets: forgotten with the first right answer."""

    kind: str
    name: str
    resets: bool = False

    @property
    def key(self) -> str:
        return hashlib.sha256(f"{self.kind}\0{self.name}".encode()).hexdigest()


@dataclass(frozen=True)
class Limit:
    """free: failures before the first pause, which is `first` seconds."""

    free: int
    first: float = 2.0


def limit_for(kind: str) -> Limit:
    free = settings.LOGIN_FAILURES
    limits = {
        "login.pair": Limit(free),
        "login.name": Limit(3 * free),
        "login.address": Limit(10 * free),
        "login.device": Limit(free),
        "password": Limit(free // 2 or 1),  # the present one, on the page that changes it
        "second-factor": Limit(free // 2 or 1),
        "token": Limit(2 * free),  # links that open nothing
        "sign-on": Limit(3 * free),  # answers of the provider that are no good
        "key": Limit(10 * free),
        "reset.name": Limit(3, first=300.0),  # letters to one address
        "reset.address": Limit(2 * free),
    }
    return limits[kind]


class Attempt:
    """One that is counted already. The person who was right takes it back."""

    def __init__(self, subjects: list[Subject]) -> None:
        self._subjects = subjects

    def succeeded(self) -> None:
        now = timezone.now()
        for subject in self._subjects:
            rows = GuessCounter.objects.filter(key=subject.key)
            if subject.resets:
                rows.delete()
            else:
                _take_back(subject, now)


def begin_attempt(*subjects: Subject) -> Attempt:
    """Count an attempt for each subject. Raises TooManyRequests, and counts nothing, while one of them is closed."""
    ordered = sorted(subjects, key=lambda subject: subject.key)
    now = timezone.now()
    refuse_while_closed(*ordered, now=now)
    for position, subject in enumerate(ordered):
        if not _count(subject, now):  # someone else's attempt closed it this moment
            for counted in ordered[:position]:
                _take_back(counted, now)
            refuse_while_closed(*ordered, now=now)
    return Attempt(ordered)


def refuse_while_closed(*subjects: Subject, now: datetime | None = None) -> None:
    now = now or timezone.now()
    keys = [subject.key for subject in subjects]
    ends = GuessCounter.objects.filter(key__in=keys, blocked_until__gt=now).values_list(
        "blocked_until", flat=True
    )
    if until := max((end for end in ends if end is not None), default=None):
        seconds = max(1, round((until - now).total_seconds()))
        raise TooManyRequests(
            f"There were too many failed attempts. Try again in {_words(seconds)}.", retry_after=seconds
        )


def begin_login(request: HttpRequest, email: str) -> Attempt:
    """Before a password is looked at. Whether the name exists changes nothing here but what its owner is spared."""
    address = address_of(request)
    pair = Subject("login.pair", f"{email}\0{address}", resets=True)
    everyone = [pair, Subject("login.name", email), Subject("login.address", address)]
    if (device := _device_of(request, email)) is not None:
        try:
            return begin_attempt(Subject("login.device", device, resets=True))
        except TooManyRequests:
            pass  # guessed from there as well: it is like any other from now on
    return begin_attempt(pair) if _is_signed_in_from(email, address) else begin_attempt(*everyone)


def remember_device(request: HttpRequest, response: HttpResponse, user: User) -> None:
    """After a sign-in: this browser is known to be the user's."""
    nonce = _device_of(request, user.email) or secrets.token_urlsafe(16)
    response.set_cookie(
        DEVICE_COOKIE,
        signing.dumps([_name_mark(user.email), nonce], salt=_DEVICE_SALT),
        max_age=_DEVICE_SECONDS,
        httponly=True,
        secure=settings.SESSION_COOKIE_SECURE,
        samesite="Lax",
    )


def forget_old_counters() -> None:
    GuessCounter.objects.filter(updated_at__lt=timezone.now() - FORGET).delete()


def address_of(request: HttpRequest) -> str:
    return client_address(request)


def _device_of(request: HttpRequest, email: str) -> str | None:
    """What names this browser, if the user of this address has signed in with it."""
    try:
        mark, nonce = signing.loads(
            request.COOKIES.get(DEVICE_COOKIE, ""), salt=_DEVICE_SALT, max_age=_DEVICE_SECONDS
        )
    except (signing.BadSignature, ValueError, TypeError):
        return None
    return str(nonce) if mark == _name_mark(email) else None


def _is_signed_in_from(email: str, address: str) -> bool:
    if parse_address(address) is None:
        return False
    now = timezone.now()
    return UserSession.objects.filter(user__email=email, address=address, expire_date__gt=now).exists()


def _name_mark(email: str) -> str:
    """In place of the address: the cookie is signed, not secret."""
    return hashlib.sha256(f"device of {email}".encode()).hexdigest()[:24]


_COUNT = """
INSERT INTO accounts_guesscounter AS counter (key, failures, updated_at, blocked_until)
VALUES (%(key)s, 1, %(now)s, CASE WHEN 1 > %(free)s THEN %(now)s + make_interval(secs => %(first)s) END)
ON CONFLICT (key) DO UPDATE SET
    failures = CASE WHEN counter.updated_at < %(forget)s THEN 1 ELSE counter.failures + 1 END,
    updated_at = %(now)s,
    blocked_until = CASE WHEN counter.updated_at >= %(forget)s AND counter.failures >= %(free)s
        THEN %(now)s + make_interval(secs => least(%(cap)s, %(first)s * 2 ^ least(counter.failures - %(free)s, 20))) END
WHERE counter.blocked_until IS NULL OR counter.blocked_until <= %(now)s
RETURNING failures
"""


def _count(subject: Subject, now: datetime) -> bool:
    """One statement, so that attempts at the same time are all counted. False where the subject is closed."""
    limit = limit_for(subject.kind)
    values: dict[str, str | int | float | datetime] = {
        "key": subject.key,
        "now": now,
        "forget": now - FORGET,
        "cap": CAP_SECONDS,
        "free": limit.free,
        "first": limit.first,
    }
    with connection.cursor() as cursor:
        cursor.execute(_COUNT, values)
        return cursor.fetchone() is not None


def _take_back(subject: Subject, now: datetime) -> None:
    with connection.cursor() as cursor:
        cursor.execute(
            "UPDATE accounts_guesscounter SET failures = failures - 1, "
            "blocked_until = CASE WHEN updated_at <= %s THEN NULL ELSE blocked_until END "
            "WHERE key = %s AND failures > 0",
            [now, subject.key],
        )
    GuessCounter.objects.filter(key=subject.key, failures=0).delete()


def _words(seconds: int) -> str:
    if seconds < 90:
        return f"{seconds} second{'' if seconds == 1 else 's'}"
    return f"{round(seconds / 60)} minutes"
