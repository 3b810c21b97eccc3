"""An induction by the real engine, from the command to the rows."""

import json
import threading

import pytest
from django.core.management import call_command
from django.db import connection

from apps.accounts.models import Project
from apps.metrics.models import Induction, MetricVerdict
from apps.metrics.tasks import advance_inductions
from tests.metrics.said import comments, import_comments

pytestmark = pytest.mark.django_db(transaction=True)


def test_the_command_induces_metrics(project: Project, capsys: pytest.CaptureFixture[str]) -> None:
    import_comments(project, comments(8))

    never = threading.Event()

    def work() -> None:
        try:
            while not Induction.objects.filter(state="queued").exists():
                never.wait(0.05)
            advance_inductions()
        finally:
            connection.close()

    worker = threading.Thread(target=work)
    worker.start()
    call_command("induce_metrics", project.slug, "--json")
    worker.join()
    found = json.loads(capsys.readouterr().out)
    assert found["state"] == "succeeded"
    assert found["metrics"]
    for metric in found["metrics"]:
        assert metric["name"]
        assert metric["definition"]
        assert metric["good"] or metric["bad"]
        assert metric["aspects"]
    told = [aspect["feedback"] for metric in found["metrics"] for aspect in metric["aspects"]]
    assert set(told) <= {comment["text"] for comment in comments(8)}, "nothing is invented"
    assert 0 <= found["coverage"] <= 1
    assert 0 <= found["redundancy"] <= 1
    assert found["held_out"]["n"] > 0
    assert MetricVerdict.objects.count() == 16 * len(found["metrics"])
    assert MetricVerdict.objects.exclude(sign=0).filter(because__isnull=False, step__isnull=False).exists()
