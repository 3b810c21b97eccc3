"""A broker that takes no changes is an empty one to a worker: it ended, and the job it was doing with it."""

from queue import Empty
from types import SimpleNamespace
from typing import Any

import pytest
from kombu import Connection
from kombu.transport import sqlalchemy as kombus
from psycopg import errors
from sqlalchemy.exc import InternalError, OperationalError

from apps.core.jobs import broker_transport


def _channel(monkeypatch: pytest.MonkeyPatch, error: Exception) -> tuple[Any, list[str]]:
    def fails(*arguments: Any, **named: Any) -> None:
        raise error

    monkeypatch.setattr(kombus.Channel, "_get", fails)
    monkeypatch.setattr(kombus.Channel, "_put", fails)
    channel, done = object.__new__(broker_transport.Channel), []
    channel._session = SimpleNamespace(invalidate=lambda: done.append("invalidated"))
    return channel, done


def test_reading_waits_and_sending_says_so(monkeypatch: pytest.MonkeyPatch, caplog: Any) -> None:
    refused = InternalError("SELECT ... FOR UPDATE", {}, errors.ReadOnlySqlTransaction("cannot execute"))
    channel, done = _channel(monkeypatch, refused)
    for _ in range(3):
        with pytest.raises(Empty):
            channel._get("default")
    with pytest.raises(InternalError):
        channel._put("default", {})
    assert done == ["invalidated"] * 4  # so that the next one is of the server that is there by then
    assert len(caplog.records) == 1 and "takes no changes" in caplog.text


def test_what_is_lost_is_left_to_celery(monkeypatch: pytest.MonkeyPatch) -> None:
    channel, done = _channel(monkeypatch, OperationalError("SELECT", {}, errors.AdminShutdown("gone")))
    with pytest.raises(OperationalError):
        channel._get("default")
    assert done == []


def test_both_names_of_the_transport_are_ours() -> None:
    for scheme in ("sqla", "sqlalchemy"):
        transport = Connection(f"{scheme}+postgresql+psycopg://nobody@127.0.0.1:9/none").get_transport_cls()
        assert transport is broker_transport.Transport
