"""`judge`: from the command to the figures, with a worker next to it."""

import json
import threading

import pytest
from django.core.management import CommandError, call_command
from django.db import connection

from apps.judges.models import JudgeRun
from apps.judges.tasks import advance_judge_runs
from apps.llm.models import LLMConnection
from tests.judges import parcels
from tests.judges.parcels import SCORED

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture
def worker() -> threading.Thread:
    """Works off the judge run that will be there."""
    never = threading.Event()

    def work() -> None:
        try:
            while not JudgeRun.objects.filter(state="queued").exists():
                never.wait(0.05)
            advance_judge_runs()
        finally:
            connection.close()

    return threading.Thread(target=work)


def test_it_follows_and_reports(
    rules: LLMConnection, worker: threading.Thread, capsys: pytest.CaptureFixture[str]
) -> None:
    parcels.judge(rules)
    worker.start()
    call_command("judge", rules.project.slug, "rules", "--campaign", SCORED, "--hand-in", "--json")
    worker.join()
    found = json.loads(capsys.readouterr().out)
    assert found["state"] == "succeeded" and found["failed"] == 0 and found["handed_in"]
    assert found["judge"] == "judge:rules" and found["answered"] == 2 * parcels.TASKS
    (care,) = found["agreement"]
    assert care["name"] == "Care" and care["n"] == 2 * parcels.TASKS and care["trust"] == "agrees"
    low, high = care["interval"]
    assert 0.667 < low < care["alpha"] < high <= 1


def test_with_nobody_to_ask_it_fails_in_words(rules: LLMConnection) -> None:
    parcels.judge(rules)
    rules.delete()
    with pytest.raises(CommandError, match="LLM connection of rules was deleted"):
        call_command("judge", "desk", "rules", "--campaign", SCORED)
