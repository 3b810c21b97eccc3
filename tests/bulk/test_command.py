"""The command `bulk`."""

import json
from pathlib import Path

import pytest
from django.core.management import CommandError, call_command

from apps.accounts.models import Project
from apps.bulk.models import BulkJob
from apps.bulk.services import pause_bulk_job
from apps.training.models import RewardModel
from tests.bulk.stored import end_chunks, store_trajectories

pytestmark = pytest.mark.django_db


def test_it_estimates_creates_resumes_and_writes(
    project: Project,
    model: RewardModel,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    store_trajectories(project, 3)
    named = [project.slug, "score", "--model", "quick", "--filter", "agent=desk"]
    call_command("bulk", *named, "--estimate", "--json")
    assert json.loads(capsys.readouterr().out)["items"] == 3 and not BulkJob.objects.exists()
    call_command("bulk", *named, "--json")
    created = json.loads(capsys.readouterr().out)
    job = BulkJob.objects.get(pk=created["job"])
    assert (created["state"], created["items"], created["done"]) == ("running", 3, 0)
    pause_bulk_job(job=job, by=None)

    def work(seconds: float) -> None:  # in the worker's place, while the command waits
        end_chunks(job)

    monkeypatch.setattr("apps.bulk.management.commands.bulk.time.sleep", work)
    out = tmp_path / "rewards.jsonl"
    call_command("bulk", project.slug, "resume", "--job", str(job.pk), "--out", str(out), "--json")
    assert json.loads(capsys.readouterr().out) | {"per_second": 0} == {
        "job": job.pk,
        "state": "succeeded",
        "items": 3,
        "done": 3,
        "problems": 0,
        "missing": 0,
        "tokens": 9,
        "per_second": 0,
        "written": 3,
    }
    assert len(out.read_text().splitlines()) == 3
    with pytest.raises(CommandError, match="--job ID"):
        call_command("bulk", project.slug, "resume")
