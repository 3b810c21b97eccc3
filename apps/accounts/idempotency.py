"""Writes over the API: one that is refused changes nothing, and with an `Idempotency-Key` the same request sent
twice is done once and answered twice.

    api.add_decorator(idempotent, mode="view")

The work and its recorded answer are one transaction. A second request with the same key waits for the first at the
unique constraint, then gets its answer; after a failure nothing is recorded and the second one does the work.
Answers are kept for two days; those that show a secret once are kept encrypted.
"""

import hashlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import timedelta
from functools import wraps
from tempfile import SpooledTemporaryFile
from typing import Any

from django.db import transaction
from django.http import HttpRequest, HttpResponse
from django.utils import timezone

from apps.accounts.auth import key_of
from apps.accounts.models import ApiKey, IdempotentResponse
from apps.core.http.problems import problem
from apps.core.storage.encryption import decrypted, encrypted

MAX_KEY = 255
KEPT_FOR = timedelta(days=2)
_CHUNK = 2**20
_READS = ("GET", "HEAD", "OPTIONS")
_SHOWN_ONCE = "touchstone.answer_shows_secret"  # in the request's META
ENCRYPTED = "encrypted:"  # begins a kept answer that was encrypted


def idempotent(view: Callable[..., HttpResponse]) -> Callable[..., HttpResponse]:
    @wraps(view)
    def once(request: HttpRequest, *args: Any, **kwargs: Any) -> HttpResponse:
        if request.method in _READS:
            return view(request, *args, **kwargs)
        name = request.headers.get("Idempotency-Key")
        key = key_of(request) if name else None
        with transaction.atomic():
            if not name or key is None:  # without a valid key the operation itself answers 401
                response = view(request, *args, **kwargs)
            elif len(name) > MAX_KEY:
                return problem(
                    400, f"Idempotency-Key has {len(name)} characters; at most {MAX_KEY} are kept."
                )
            else:
                response = _once(request, name, key, lambda: view(request, *args, **kwargs))
            if response.status_code >= 400:
                transaction.set_rollback(True)
            return response

    return once


def _once(
    request: HttpRequest, name: str, key: ApiKey, operation: Callable[[], HttpResponse]
) -> HttpResponse:
    with _spooled(request) as body_hash:
        row, created = IdempotentResponse.objects.get_or_create(
            project=key.project,
            key=name,
            request_hash=hashlib.sha256(f"{request.method} {request.get_full_path()}".encode()).hexdigest(),
            defaults={"api_key": key, "body_hash": body_hash},
        )
        if not created:
            return _replay(row, key_id=key.pk, body_hash=body_hash)
        response = operation()
        if response.status_code < 400:
            body = response.content.decode()
            if _SHOWN_ONCE in request.META:
                body = ENCRYPTED + encrypted(body)
            row.status, row.body = response.status_code, body
            row.save(update_fields=["status", "body"])
        return response


def mark_secret_answer(request: HttpRequest) -> None:
    """Called by an operation whose answer has a secret that is shown once."""
    request.META[_SHOWN_ONCE] = True


def forget_old_answers() -> int:
    """Delete what no client will ask for again. Returns how many; beat calls it."""
    return IdempotentResponse.objects.filter(created_at__lt=timezone.now() - KEPT_FOR).delete()[0]


def _replay(row: IdempotentResponse, *, key_id: int, body_hash: str) -> HttpResponse:
    if row.body_hash != body_hash or row.api_key_id != key_id:
        detail = (
            f"Idempotency-Key {row.key!r} was used for another request; send this one with a different key."
        )
        return problem(422, detail)
    headers = {"Idempotent-Replay": "true"}
    body = decrypted(row.body.removeprefix(ENCRYPTED)) if row.body.startswith(ENCRYPTED) else row.body
    return HttpResponse(
        body, status=row.status, content_type="application/json; charset=utf-8", headers=headers
    )


@contextmanager
def _spooled(request: HttpRequest) -> Iterator[str]:
    """SHA-256 of the body. The body may be large, so it is spooled and given back to the request as a fresh stream."""
    digest = hashlib.sha256()
    with SpooledTemporaryFile(max_size=_CHUNK) as spool:
        while chunk := request.read(_CHUNK):
            digest.update(chunk)
            spool.write(chunk)
        spool.seek(0)
        request._stream = spool  # type: ignore[assignment]
        request._read_started = False  # type: ignore[attr-defined]
        yield digest.hexdigest()
