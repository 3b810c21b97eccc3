"""From where keys are used: a key seen at a network it was never seen at is an event of the audit trail.

Noticing is a look into a set, so that it can stand on the way of every call; writing comes later and seldom: a process
writes a key and a network once.
"""

import ipaddress
import logging
import threading

from django.db import DatabaseError, transaction

from apps.accounts.audit_trail import record_audit
from apps.accounts.models import ApiKey, KeyAddress
from apps.accounts.pseudonyms import network_pseudonym, person_pseudonym
from apps.core.http.client_address import parse_address

log = logging.getLogger(__name__)

MOST_NETWORKS = 100  # of a key; who is everywhere is no news
_MOST_SEEN = 50_000  # pairs a process remembers
_MOST_NEW = 1000  # pairs that wait to be written


class KeyAddressLog:
    """Of one process. For any number of threads."""

    def __init__(self) -> None:
        self._seen: set[tuple[str, str]] = set()
        self._new: list[tuple[str, str]] = []
        self._lock = threading.Lock()

    def notice(self, prefix: str, address: str) -> bool:
        """Whether there is something to write, of this call or an earlier one."""
        pair = (prefix, network_of(address))
        if pair[1] and pair not in self._seen:
            with self._lock:
                if len(self._seen) >= _MOST_SEEN:
                    self._seen.clear()
                if pair not in self._seen and len(self._new) < _MOST_NEW:
                    self._seen.add(pair)
                    self._new.append(pair)
        return bool(self._new)

    def flush(self) -> int:
        """Write what was noticed; how many events. What cannot be written now is kept for the next time."""
        with self._lock:
            pairs, self._new = self._new, []
        if not pairs:
            return 0
        try:
            with transaction.atomic():
                return sum(_written(prefix, network) for prefix, network in pairs)
        except DatabaseError:
            log.warning("where keys were used from is written later", exc_info=True)
            with self._lock:
                self._new = [*pairs, *self._new][:_MOST_NEW]
            return 0


def network_of(address: str) -> str:
    """An IPv4 address, or the /64 an IPv6 address is in: a host takes new ones there as it likes."""
    parsed = parse_address(address)
    if isinstance(parsed, ipaddress.IPv6Address):
        return str(ipaddress.ip_network((parsed, 64), strict=False))
    return str(parsed) if parsed is not None else ""


def _written(prefix: str, network: str) -> bool:
    key = ApiKey.objects.select_related("project", "owner_user").filter(prefix=prefix).first()
    if key is None:
        return False
    known = KeyAddress.objects.filter(api_key=key).count()
    if known >= MOST_NETWORKS or not KeyAddress.objects.get_or_create(api_key=key, network=network)[1]:
        return False
    person = person_pseudonym(key.owner_user.email) if key.owner_user else ""
    data = {"from": network_pseudonym(network, of_person=person), "networks before": known}
    record_audit(project=key.project, actor=key, verb="key.used-from-new-address", target=prefix, data=data)
    return True


key_addresses = KeyAddressLog()
