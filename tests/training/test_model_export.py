"""Exports of models: from the page, over HTTP, by the command, and to a hub."""

import io
import json
import tarfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from django.core.management import CommandError, call_command
from django.test import Client
from django.urls import reverse

from apps.accounts.models import AuditEvent, Project, Scope, User
from apps.accounts.services import create_api_key, create_project
from apps.core.errors import Conflict, DomainError, NotFound
from apps.core.hub_push import require_hub_name
from apps.core.jobs.job_queue import JobState
from apps.core.storage import artifacts
from apps.training.model_export import ModelExportOptions
from apps.training.model_export_jobs import remove_old_model_exports, start_model_export
from apps.training.models import ModelExport, RewardModel
from apps.training.services import adopt_model, delete_model
from apps.training.tasks import advance_model_exports
from tests.datasets.hub_server import TOKEN, Hub, running_hub

MANIFEST = {
    "schema_version": 1,
    "objective": "bradley_terry",
    "backbone": {"kind": "linear"},
    "aggregation": "value",
    "reward": {"median": 0.1, "std": 2.0},
}


@pytest.fixture
def model(project: Project, tmp_path: Path) -> RewardModel:
    folder = tmp_path / "weights"
    folder.mkdir()
    (folder / "model.safetensors").write_bytes(b"weights")
    (folder / "touchstone.json").write_text(json.dumps(MANIFEST))
    artifact = artifacts.store_tree(folder, "models/polite-1")
    return adopt_model(project=project, name="polite", artifact=artifact, manifest=MANIFEST, by=None)


@pytest.fixture
def headers(project: Project) -> dict[str, str]:
    key = create_api_key(project=project, scopes=[Scope.TRAIN])[1]
    return {"Authorization": f"Bearer {key}", "Content-Type": "application/json"}


def unpacked(response: Any) -> dict[str, bytes]:
    content = io.BytesIO(b"".join(response.streaming_content))
    with tarfile.open(fileobj=content) as archive:
        return {
            entry.name: archive.extractfile(entry).read()  # type: ignore[union-attr]
            for entry in archive
        }


def test_over_http(model: RewardModel, client: Client, headers: dict[str, str]) -> None:
    exports = "/api/v1/projects/desk/models/polite/exports"
    refused = client.post(exports, json.dumps({"format": "gguf"}), "application/json", headers=headers)
    assert (refused.status_code, refused.json()["pointer"]) == (400, "/format")
    assert "it has artifact, standalone" in refused.json()["detail"]
    started = client.post(exports, json.dumps({"format": "artifact"}), "application/json", headers=headers)
    assert (started.status_code, started.json()["state"]) == (202, "queued")
    path = f"/api/v1/model-exports/{started.json()['export']}"
    assert client.get(f"{path}/file", headers=headers).status_code == 404
    again = client.post(exports, json.dumps({"format": "artifact"}), "application/json", headers=headers)
    assert again.status_code == 409
    advance_model_exports()
    found = client.get(path, headers=headers).json()
    assert (found["state"], found["error"], found["model"]) == ("succeeded", "", "desk/polite@1")
    files = unpacked(client.get(f"{path}/file", headers=headers))
    inside = "desk-polite-1-artifact"
    assert sorted(files) == [
        f"{inside}/{name}" for name in ("README.md", "model.safetensors", "touchstone.json")
    ]
    assert files[f"{inside}/model.safetensors"] == b"weights"
    assert AuditEvent.objects.get(verb="model.exported").data == {"format": "artifact"}


def test_keys_of_other_projects_and_scopes_see_nothing(
    model: RewardModel, client: Client, researcher: User
) -> None:
    other_project = create_project(slug="other", owner=researcher)
    export = start_model_export(model=model, options=ModelExportOptions(), by=None)
    for scope, project, status in ((Scope.TRAIN, other_project, 404), (Scope.REWARD, model.project, 403)):
        key = create_api_key(project=project, scopes=[scope])[1]
        for path in (f"/api/v1/model-exports/{export.pk}", f"/api/v1/model-exports/{export.pk}/file"):
            assert client.get(path, headers={"Authorization": f"Bearer {key}"}).status_code == status


def test_from_the_page(model: RewardModel, researcher_client: Client) -> None:
    fragment = reverse("training:model-export-list", args=["desk", model.pk])
    assert (
        fragment
        in researcher_client.get(reverse("training:model-detail", args=["desk", model.pk])).content.decode()
    )
    shown = researcher_client.get(fragment).content.decode()
    assert 'value="standalone"' in shown and 'value="gguf"' not in shown
    start = reverse("training:model-export-start", args=["desk", model.pk])
    researcher_client.post(start, {"format": "artifact", "outtype": "f16", "base": ""})
    waiting = researcher_client.get(fragment).content.decode()
    assert "in the queue" in waiting and 'hx-trigger="every 2s"' in waiting
    advance_model_exports()
    (export,) = ModelExport.objects.all()
    shown = researcher_client.get(fragment).content.decode()
    file = reverse("training:model-export-file", args=["desk", export.pk])
    assert file in shown and "every 2s" not in shown
    assert len(unpacked(researcher_client.get(file))) == 3
    answer = researcher_client.post(start, {"format": "gguf"}, follow=True).content.decode()
    assert "has no form &#x27;gguf&#x27;" in answer


def test_a_cancelled_one_leaves_nothing(model: RewardModel, researcher_client: Client) -> None:
    export = start_model_export(model=model, options=ModelExportOptions(), by=None)
    cancel = reverse("training:model-export-cancel", args=["desk", export.pk])
    researcher_client.post(cancel)
    advance_model_exports()
    export.refresh_from_db()
    assert (export.state, export.artifact) == (JobState.CANCELLED, "")


def test_files_go_with_their_time_and_their_model(
    model: RewardModel, settings: Any, django_capture_on_commit_callbacks: Callable[..., Any]
) -> None:
    old = start_model_export(model=model, options=ModelExportOptions(), by=None)
    advance_model_exports()
    settings.EXPORT_DAYS = 0
    assert remove_old_model_exports() == 1
    newer = start_model_export(model=model, options=ModelExportOptions(), by=None)
    advance_model_exports()
    with django_capture_on_commit_callbacks(execute=True):
        delete_model(model=model, by=None)
    for export in (old, newer):
        export.refresh_from_db()
        assert export.state == JobState.SUCCEEDED and not export.is_there
        with pytest.raises(NotFound):
            artifacts.open_file(export.artifact)


def test_a_running_one_is_not_started_again_and_options_belong_to_their_form(model: RewardModel) -> None:
    start_model_export(model=model, options=ModelExportOptions(), by=None)
    with pytest.raises(Conflict, match="already running"):
        start_model_export(model=model, options=ModelExportOptions(), by=None)
    with pytest.raises(DomainError, match="A base belongs to the form 'adapter'"):
        start_model_export(model=model, options=ModelExportOptions(base="org/base"), by=None)
    decoder = MANIFEST | {"backbone": {"kind": "decoder", "lora_rank": 8}, "adapter": {"rank": 8}}
    adapter = adopt_model(
        project=model.project, name="adapter", artifact=model.artifact, manifest=decoder, by=None
    )
    with pytest.raises(DomainError, match="write at most 255") as refused:
        start_model_export(model=adapter, options=ModelExportOptions(form="adapter", base="b" * 256), by=None)
    assert refused.value.pointer == "/base"
    with pytest.raises(DomainError, match="An outtype belongs to the form 'gguf'"):
        start_model_export(model=model, options=ModelExportOptions(out_type="f16"), by=None)


@pytest.fixture
def hub(monkeypatch: pytest.MonkeyPatch) -> Iterator[Hub]:
    pytest.importorskip("huggingface_hub")
    from huggingface_hub import constants

    monkeypatch.setenv("HF_TOKEN", TOKEN)
    monkeypatch.setenv("NO_PROXY", "127.0.0.1")
    with running_hub() as server:
        monkeypatch.setattr(constants, "ENDPOINT", server.url)
        monkeypatch.setattr(constants, "HF_HUB_OFFLINE", False)
        monkeypatch.setattr(constants, "HF_HUB_DISABLE_XET", True)
        yield server


@pytest.mark.filterwarnings("ignore:Use 'content=:DeprecationWarning")
def test_pushed_to_a_hub_it_is_private_unless_said_otherwise(model: RewardModel, hub: Hub) -> None:
    def push(*more: str) -> dict[str, Any]:
        out, error = io.StringIO(), io.StringIO()
        call_command(
            "export_model",
            "desk/polite",
            "--push",
            "hf://org/polite",
            *more,
            "--json",
            stdout=out,
            stderr=error,
        )
        assert TOKEN not in out.getvalue() + error.getvalue()
        result: dict[str, Any] = json.loads(out.getvalue())
        return result

    hub.files["model-00001-of-00002.safetensors"] = b"an older shard"
    hub.private = True
    result = push()
    assert hub.created[0].get("private") is True or hub.created[0].get("visibility") == "private"
    assert result["url"] == f"{hub.url}/org/polite"
    assert hub.commits == ["Export desk/polite@1 as artifact"]
    assert sorted(hub.files) == ["README.md", "model.safetensors", "touchstone.json"]
    assert AuditEvent.objects.get(verb="model.exported").data["pushed_to"] == "hf://org/polite"
    hub.private = False
    with pytest.raises(CommandError, match="exists and is public, so nothing was pushed"):
        push()
    push("--public")
    assert len(hub.commits) == 2
    with pytest.raises(DomainError, match="is no model of a hub"):
        require_hub_name("hf://datasets/org", kind="model")
    with pytest.raises(CommandError, match="Name a folder, or a model of a hub"):
        call_command("export_model", "desk/polite")
