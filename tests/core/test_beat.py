"""Beat: a round that fails is tried again. What it nudges is tested with a broker, in test_brokers."""

import threading

import pytest

from apps.core.jobs import beat
from apps.core.jobs.periodic import Periodic


def test_what_fails_is_logged_and_tried_again(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    stop, tries = threading.Event(), [0]

    def sweep() -> None:
        tries[0] += 1
        if tries[0] == 3:
            stop.set()
        raise ConnectionError("the database restarts")

    ours = Periodic("sweep", 0.0, sweep)
    monkeypatch.setattr(beat, "nudge_eligible", int)
    monkeypatch.setattr(beat.broker, "delete_delivered", int)
    monkeypatch.setattr(beat, "PERIODIC", {"sweep": ours})
    monkeypatch.setattr(beat, "close_old_connections", lambda: None)
    monkeypatch.setattr(beat.connection, "close", lambda: None)
    beat.run(stop)
    assert tries == [3]
    assert caplog.text.count("beat could not sweep; it tries again in 0 s") == 3
