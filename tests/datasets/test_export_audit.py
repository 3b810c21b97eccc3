"""Whatever takes data along leaves a line that says who did, and names no annotator."""

from pathlib import Path
from typing import Any

import pytest
from django.core.management import call_command
from django.test import Client

from apps.accounts.models import AuditEvent, Project, Scope
from apps.accounts.pseudonyms import person_pseudonym
from apps.accounts.services import COMMAND_LINE, create_api_key
from tests.datasets.feedback import freeze

pytestmark = pytest.mark.usefixtures("own_home")


def lines() -> list[tuple[str, str, str, dict[str, Any]]]:
    rows = AuditEvent.objects.filter(verb__endswith=".exported").order_by("pk")
    return list(rows.values_list("actor", "verb", "target", "data"))


def test_by_command(judged: Project, tmp_path: Path) -> None:
    freeze(judged)
    out = ["--out", str(tmp_path / "out")]
    call_command("export_feedback", "desk", "--format", "csv", "--kind", "pairwise", *out)
    call_command("export_dataset", "desk/first", "--format", "trl", "--split", "train", *out)
    call_command("export_trajectories", "desk", "--format", "openai", "--task", "task-1", *out)
    assert lines() == [
        (COMMAND_LINE, "feedback.exported", "csv", {"format": "csv", "kinds": ["pairwise"]}),
        (COMMAND_LINE, "dataset.exported", "desk/first@1", {"format": "trl", "split": "train"}),
        (COMMAND_LINE, "trajectories.exported", "openai", {"format": "openai", "filter": "task=task-1"}),
    ]


def test_by_key(judged: Project, client: Client) -> None:
    freeze(judged)
    key, secret = create_api_key(project=judged, scopes=[Scope.FEEDBACK_READ, Scope.TRAIN])
    headers = {"Authorization": f"Bearer {secret}"}
    for path in ("feedback?kind=pairwise", "datasets/first/export?format=trl"):
        answer = client.get(f"/api/v1/projects/desk/{path}", headers=headers)
        assert len(list(answer.streaming_content)) == 12  # type: ignore[attr-defined]
    assert lines() == [
        (key.prefix, "feedback.exported", "jsonl", {"format": "jsonl", "kinds": ["pairwise"]}),
        (key.prefix, "dataset.exported", "desk/first@1", {"format": "trl"}),
    ]
    refused = client.get("/api/v1/projects/desk/feedback?kind=wrong", headers=headers)
    assert (refused.status_code, len(lines())) == (400, 2)


def test_on_the_page(judged: Project, researcher: Any, researcher_client: Client) -> None:
    dataset_version = freeze(judged)
    answer = researcher_client.get(f"/p/desk/datasets/{dataset_version.pk}/export/trl/")
    assert len(list(answer.streaming_content)) == 12  # type: ignore[attr-defined]
    assert lines() == [
        (person_pseudonym(researcher.email), "dataset.exported", "desk/first@1", {"format": "trl"})
    ]
