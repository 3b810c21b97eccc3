"""Beat: every round nudges what waits; a round that fails is tried again."""

import threading

import pytest

from apps.accounts.models import Project
from apps.core import beat, jobs
from apps.core.periodic import Periodic
from apps.datasets.models import Snapshot


@pytest.mark.django_db
def test_a_nudge_for_each_row_that_waits_up_to_a_few(monkeypatch: pytest.MonkeyPatch) -> None:
    sent: list[str] = []
    monkeypatch.setattr(jobs, "nudge", sent.append)
    project = Project.objects.create(slug="desk", name="Desk")
    assert beat.nudge_eligible() == 0
    Snapshot.objects.bulk_create(Snapshot(project=project, name="s", version=n) for n in range(3))
    assert beat.nudge_eligible() == 3
    assert sent == ["apps.datasets.tasks.advance_snapshots"] * 3
    Snapshot.objects.bulk_create(Snapshot(project=project, name="t", version=n) for n in range(100))
    assert beat.nudge_eligible() == 8


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
