"""Sending trajectories in."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any
from urllib.parse import quote

import httpx

from touchstone_client.errors import BadReply
from touchstone_client.retries import PATIENT, Retries
from touchstone_client.transport import TIMEOUT, Caller, Key


@dataclass(frozen=True, slots=True)
class Ingested:
    """rejected: {"line" or index, "pointer", "message"} of each record that was not taken. updated: duplicates that
    brought an outcome which was unknown. dropped: {"path", "reason", "count"} of fields that are in no trajectory."""

    created: int
    duplicates: int
    rejected: tuple[dict[str, Any], ...]
    updated: int = 0
    dropped: tuple[dict[str, Any], ...] = ()


def ingest(
    url: str,
    project: str,
    key: Key,
    trajectories: Sequence[Mapping[str, Any]],
    *,
    format: str | None = None,
    keep_good: bool = False,
    retries: Retries = PATIENT,
    timeout: httpx.Timeout | float = TIMEOUT,
) -> Ingested:
    """Store trajectories in a project; what is there already is counted, not stored twice, so that it may be retried.

    key: with the scope `ingest`. format: as of `import_trajectories`, found out without. keep_good: take the good
    records where some are bad; else nothing is taken. Raises RewardServiceError.
    """
    params = {"format": format, "keep_good": "1" if keep_good else None}
    caller = Caller(url, key, retries=retries, timeout=timeout)
    try:
        reply = caller.call(
            "POST",
            f"/api/v1/projects/{quote(project, safe='')}/trajectories",
            params={name: value for name, value in params.items() if value is not None},
            json=[dict(trajectory) for trajectory in trajectories],
        )
        return Ingested(
            int(reply["created"]),
            int(reply["duplicates"]),
            tuple(reply["rejected"]),
            int(reply.get("updated", 0)),
            tuple(reply.get("dropped", ())),
        )
    except (KeyError, TypeError, ValueError) as error:
        raise BadReply(f"The reply has not the shape of an import ({error!r}).") from error
    finally:
        caller.close()
