"""Which artifact store belongs to the rows of the database.

A small file in the store holds an id, written once, which the database has too. A process with the same database and
broker but another store would fail one job after the other, so it is refused at its start. The file is in no backup:
what is restored into another store gets an id of its own at the first start.
"""

import json
import logging
import socket
import uuid
from typing import Any, cast
from urllib.parse import urlsplit

from django.apps import apps
from django.conf import settings
from django.db import transaction
from django.utils import timezone

from apps.core.errors import Conflict, DomainError
from apps.core.models import StoreIdentity
from apps.core.storage import artifacts
from apps.core.storage.storage_names import storage_name

log = logging.getLogger(__name__)

IDENTITY_FILE = storage_name("installation", "identity.json")
_SOLE = 1  # the key of the only row
_NAMED = 20  # of the newest artifacts of each kind, as many are looked for
_ENDED = ("deleted_at", "withdrawn_at", "removed_at")  # of rows whose files may be gone


class StoreUnavailable(DomainError):
    """The store cannot be read or written."""


def require_own_store(*, writes: bool) -> str:
    """Where the store is, in words. An installation without an identity, new or of an earlier version, gets one.

    Raises Conflict where the store is another than the installation's, and StoreUnavailable where it cannot be read
    or, with `writes`, written.
    """
    found = _read()
    row = StoreIdentity.objects.filter(pk=_SOLE).first()
    if row is None or row.stored_at is None:
        row, found = _identify()
    if found != row.identity:
        raise Conflict(_other_store(row.place, found))
    place = store_place()
    if writes:
        _write_and_delete()
        if row.place != place:  # moved with its files
            StoreIdentity.objects.filter(pk=_SOLE).update(place=place)
    return place_in_words(place)


def refuse_other_store() -> None:
    """For commands that store something. Raises Conflict where the installation has an identity and it is not here."""
    row = StoreIdentity.objects.exclude(stored_at=None).first()
    if row is not None and (found := _read()) != row.identity:
        raise Conflict(_other_store(row.place, found))


def warn_of_unavailable_store() -> None:
    """For processes that work without it for a while. Raises Conflict as `require_own_store` does."""
    try:
        require_own_store(writes=False)
    except StoreUnavailable as error:
        log.warning("%s", error.message)


def store_place() -> dict[str, str]:
    """{"folder", "host"} of a folder of this machine, or {"bucket", "address"}."""
    if (folder := artifacts.store_folder()) is not None:
        return {"folder": str(folder), "host": socket.gethostname()}
    store = cast(dict[str, Any], settings.STORAGES["artifacts"])
    options = store.get("OPTIONS", {})
    address = urlsplit(options.get("endpoint_url") or "")
    port = f":{address.port}" if address.port else ""
    shown = f"{address.scheme}://{address.hostname}{port}{address.path}" if address.hostname else ""
    return {"bucket": str(options.get("bucket_name", "")), "address": shown}


def place_in_words(place: dict[str, str]) -> str:
    if "folder" in place:
        return f"the folder {place['folder']} of the machine {place['host']}"
    return f"the bucket {place['bucket']}{' at ' if place['address'] else ' of S3'}{place['address']}"


def _identify() -> tuple[StoreIdentity, uuid.UUID | None]:
    """The identity, written by the first process that looks for it; and what is in this store afterwards."""
    StoreIdentity.objects.get_or_create(
        pk=_SOLE, defaults={"place": store_place()}
    )  # stays if this process dies
    with transaction.atomic():
        row = StoreIdentity.objects.select_for_update().get(pk=_SOLE)
        found = _read()
        if row.stored_at is not None:
            return row, found
        names = _named_artifacts()
        if names and not any(map(artifacts.is_stored_tree, names)):
            raise Conflict(
                f"This process has {place_in_words(store_place())} as artifact store, which holds none of the "
                f"artifacts of this installation ({names[0]}, ...). {_HOW}"
            )
        if found is None:
            found = row.identity
            _call("written", lambda: artifacts.store_content(_content(row.identity), IDENTITY_FILE))
        elif names:  # rows that were restored next to the store they belong to
            row.identity = found
        elif found != row.identity:
            raise Conflict(
                f"The artifact store of this process, {place_in_words(store_place())}, belongs to another "
                "installation, whose files would be overwritten. Set TOUCHSTONE_S3_BUCKET (or TOUCHSTONE_HOME) to "
                f"another one; or, if that installation is gone, delete {IDENTITY_FILE} from the store."
            )
        row.place, row.stored_at = store_place(), timezone.now()
        row.save()
        return row, found


_HOW = (
    "Give it the store of the other machines: the same TOUCHSTONE_S3_BUCKET, TOUCHSTONE_S3_URL and AWS_ variables; or, "
    "where that is a folder, mount it as artifacts/ in TOUCHSTONE_HOME."
)


def _other_store(place: dict[str, str], found: uuid.UUID | None) -> str:
    """The sentence for a store that is not the installation's."""
    own = store_place()
    if place == own:
        what = (
            f"does not hold {IDENTITY_FILE} any more" if found is None else "has the identity of another one"
        )
        return (
            f"The artifact store, {place_in_words(own)}, {what}: it was emptied, replaced, or is not mounted. Mount or "
            "restore it; the health page and `doctor` show when it is back."
        )
    sentence = (
        f"This process has another artifact store than the installation: it has {place_in_words(own)}, the "
        f"installation has {place_in_words(place)}."
    )
    if "bucket" not in place:
        return (
            f"{sentence} Mount that folder as artifacts/ in TOUCHSTONE_HOME ({settings.HOME}), or move the artifacts "
            "to a bucket and set TOUCHSTONE_S3_BUCKET on all machines."
        )
    address = f" and TOUCHSTONE_S3_URL={place['address']}" if place["address"] else ", no TOUCHSTONE_S3_URL"
    return f"{sentence} Set TOUCHSTONE_S3_BUCKET={place['bucket']}{address} and the same AWS_ variables, then start it."


def _named_artifacts() -> list[str]:
    """The newest artifacts that rows name and that should be in the store."""
    names: list[str] = []
    for model in apps.get_models():
        fields = {field.name for field in model._meta.get_fields()}
        if "artifact" in fields:
            rows = model._default_manager.filter(**{f"{name}": None for name in _ENDED if name in fields})
            names += rows.exclude(artifact="").order_by("-pk").values_list("artifact", flat=True)[:_NAMED]
    return names


def _content(identity: uuid.UUID) -> bytes:
    document = {
        "format": 1,
        "identity": str(identity),
        "about": "This artifact store belongs to the Touchstone installation with this identity. Do not delete it.",
    }
    return json.dumps(document).encode()


def _read() -> uuid.UUID | None:
    """The id in this process's store; None without one."""
    stored: bool = _call("read", lambda: artifacts.is_stored(IDENTITY_FILE))
    if not stored:
        return None
    content: bytes = _call("read", lambda: artifacts.read_file(IDENTITY_FILE))
    try:
        return uuid.UUID(json.loads(content)["identity"])
    except (ValueError, KeyError, TypeError):
        raise Conflict(
            f"{IDENTITY_FILE} in the artifact store, {place_in_words(store_place())}, is damaged: it has no identity. "
            "Restore it from a copy of the store."
        ) from None


def _write_and_delete() -> None:
    name = storage_name("installation", f"probe-{uuid.uuid4().hex}")
    _call("written", lambda: artifacts.store_content(b"probe", name))
    _call("written", lambda: artifacts.delete_file(name))


def _call(verb: str, action: Any) -> Any:
    """The result of `action`. Raises StoreUnavailable for an error of the disk or of S3."""
    try:
        return action()
    except artifacts.store_errors() as error:
        who = "the user that runs Touchstone" if "folder" in store_place() else "its credentials"
        told = " ".join(f"{error}".split())
        raise StoreUnavailable(
            f"The artifact store, {place_in_words(store_place())}, cannot be {verb}: {type(error).__name__}: {told}. "
            f"Check that it is there and that {who} may use it.",
            status=503,
        ) from error
