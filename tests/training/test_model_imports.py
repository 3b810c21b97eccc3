"""Public models by command, page and API, from a listed folder and from the hub; the child plays its part."""

import errno
import io
import json
import shutil
from pathlib import Path
from typing import Any
from unittest.mock import Mock

import pytest
from django.core.management import CommandError, call_command
from django.test import Client
from django.urls import reverse

from apps.accounts.models import Project, Scope
from apps.core.errors import DomainError
from apps.core.jobs.job_queue import ClaimLost, claim_next
from apps.training import public_models
from apps.training.hub_models import HubModelName
from apps.training.import_services import start_import
from apps.training.models import ModelImport, RewardModel
from tests.training.model_hub import COMMIT, ModelHub
from tests.training.test_api import bearer

# Of huggingface_hub and its client among themselves.
pytestmark = pytest.mark.filterwarnings("ignore:Use 'content=:DeprecationWarning")


@pytest.fixture(autouse=True)
def folder(tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch, settings: Any) -> Path:
    monkeypatch.setattr(public_models, "CHILD", "tests.training.fake_importer")
    folder = tmp_path_factory.mktemp("models") / "Skywork-V2.1"
    folder.mkdir()
    for name in ("config.json", "tokenizer.json", "model.safetensors"):
        (folder / name).write_text("{}")
    settings.MODEL_DIRS = {"skywork": str(folder)}
    return folder


def run_next() -> ModelImport:
    job = claim_next(ModelImport)
    assert job is not None
    public_models.execute(job)
    job.refresh_from_db()
    return job


def command(*arguments: str) -> tuple[dict[str, Any], str]:
    out, error = io.StringIO(), io.StringIO()
    call_command("import_model", "desk", *arguments, "--json", stdout=out, stderr=error)
    return json.loads(out.getvalue()), error.getvalue()


def test_the_command_recognises_and_imports_a_folder(project: Project, folder: Path) -> None:
    result, said = command(str(folder), "--dry-run")
    assert result["recognised"]["architecture"] == "LlamaForSequenceClassification"
    assert "8,030,000,000 parameters, 16.06 GB" in said
    assert not RewardModel.objects.exists()
    result, said = command(str(folder))
    assert result["model"] == "desk/skywork-v2-1@1"
    assert "rewards differ by at most 2.4e-07" in said
    with pytest.raises((CommandError, DomainError), match="label = 'none' is no output"):
        command(str(folder), "--label", "none")


def test_a_file_calibrates(project: Project, folder: Path, tmp_path: Path) -> None:
    (tmp_path / "chats.jsonl").write_text("{}")
    result, _ = command(str(folder), "--calibrate", str(tmp_path / "chats.jsonl"), "--name", "sky")
    assert result["recognised"]["calibration"] == str(tmp_path / "chats.jsonl")
    with pytest.raises((CommandError, DomainError), match="no frozen dataset"):
        command(str(folder), "--calibrate", "nothing")


def test_a_model_of_the_hub_is_pinned_and_only_its_weights_and_texts_are_fetched(
    project: Project, hub: ModelHub
) -> None:
    result, said = command("hf://org/rm@v2")
    assert result["model"] == "desk/rm@1"
    assert (result["recognised"]["source"], result["recognised"]["revision"]) == ("hf://org/rm", COMMIT)
    assert sorted(hub.fetched) == ["README.md", "config.json", "model.safetensors"]
    assert f"hf://org/rm at {COMMIT}: 3 files" in said
    for name, expected in (
        ("hf://org/rm@v9", "has no revision 'v9'"),
        ("hf://org/other", "is not on the hub"),
    ):
        with pytest.raises((CommandError, DomainError), match=expected):
            command(name)
    del hub.files["model.safetensors"]
    with pytest.raises((CommandError, DomainError), match=r"has no \.safetensors files at abababababab"):
        command("hf://org/rm")


def test_a_hub_that_is_not_reachable(
    project: Project, hub: ModelHub, monkeypatch: pytest.MonkeyPatch
) -> None:
    from huggingface_hub import constants

    monkeypatch.setattr(constants, "ENDPOINT", "http://127.0.0.1:9")
    start_import(project=project, source="hf://org/rm", by=None)
    job = run_next()
    assert job.state == "failed"
    assert "is not reachable" in job.error and "download the model elsewhere" in job.error


def test_a_model_is_registered_only_with_the_end_of_its_import(
    project: Project, monkeypatch: pytest.MonkeyPatch
) -> None:
    def stopped(*_: object, **__: object) -> None:
        raise ClaimLost("another attempt has it")

    start_import(project=project, source="skywork", by=None)
    monkeypatch.setattr(public_models, "finish", stopped)
    with pytest.raises(ClaimLost):
        run_next()
    assert not RewardModel.objects.exists()


def test_a_model_is_not_downloaded_where_it_is_too_large(
    project: Project, hub: ModelHub, settings: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refused() -> str:
        start_import(project=project, source="hf://org/rm", by=None)
        return run_next().error

    usage = shutil.disk_usage("/")._replace(free=3)
    with monkeypatch.context() as patched:
        patched.setattr(shutil, "disk_usage", lambda _: usage)
        assert "Free some space" in refused()
    full = OSError(errno.ENOSPC, "No space left on device")
    with monkeypatch.context() as patched:
        patched.setattr("huggingface_hub.hf_hub_download", Mock(side_effect=full))
        assert "the disk of this machine is full" in refused()
    settings.MAX_HUB_BYTES = 5
    assert "TOUCHSTONE_MAX_HUB_GB" in refused()
    settings.MAX_HUB_BYTES = 10**12
    monkeypatch.setattr("apps.training.hub_models.MOST_TEXT", 1)
    assert "a file without weights has at most" in refused()
    assert not hub.fetched


@pytest.mark.parametrize("name", ["hf://rm", "hf://a/b/c", "hf://a/..@main", "hf://a/b@x y"])
def test_names_of_the_hub(name: str) -> None:
    with pytest.raises(DomainError, match="names no model of the hub"):
        HubModelName.parse(name)


def test_by_the_page(project: Project, researcher_client: Client) -> None:
    create = reverse("training:model-import-create", args=["desk"])
    assert (
        "Import a model"
        in researcher_client.get(reverse("training:model-list", args=["desk"])).content.decode()
    )
    answer = researcher_client.post(create, {"source": "/etc"})
    assert answer.status_code == 400
    assert "is not the name of a model folder" in answer.content.decode()
    answer = researcher_client.post(create, {"source": "skywork", "option_label": "LABEL_0", "name": "sky"})
    assert answer.status_code == 302
    page = researcher_client.get(answer["Location"]).content.decode()
    assert "in the queue" in page and 'hx-trigger="every 2s"' in page
    job = run_next()
    assert (job.state, job.options, str(job.model)) == ("succeeded", {"label": "LABEL_0"}, "desk/sky@1")
    page = researcher_client.get(answer["Location"], headers={"HX-Request": "true"}).content.decode()
    assert "sky@1" in page and "hx-trigger" not in page and "<html" not in page
    assert job.model is not None
    origin = researcher_client.get(
        reverse("training:model-detail", args=["desk", job.model.pk])
    ).content.decode()
    card = researcher_client.get(reverse("training:model-card", args=["desk", job.model.pk])).content.decode()
    assert "**Imported from**: skywork\n- **Licence**: apache-2.0\n" in card
    assert "apache-2.0" in origin and "rewards differ by at most 2.4e-07" in origin
    researcher_client.post(create, {"source": "skywork", "option_label": "none"})
    assert "is no output of the model" in run_next().error


def test_by_the_api(project: Project, client: Client) -> None:
    headers = bearer(project, Scope.TRAIN)

    def post(path: str, **body: Any) -> Any:
        return client.post(path, json.dumps(body), content_type="application/json", headers=headers)

    path = "/api/v1/projects/desk/model-imports"
    first = post(path, source="skywork", dry_run=True).json()
    assert (first["state"], first["name"], first["dry_run"]) == ("queued", "skywork", True)
    run_next()
    found = client.get(f"/api/v1/model-imports/{first['id']}", headers=headers).json()
    assert (found["state"], found["model"]) == ("succeeded", None)
    assert found["recognised"]["licence"] == "apache-2.0"
    refused = post(path, source="skywork", options={"colour": "red"})
    assert (refused.status_code, refused.json()["pointer"]) == (400, "/options/colour")
    waiting = post(path, source="skywork").json()["id"]
    assert post(f"/api/v1/model-imports/{waiting}/cancel").json()["state"] == "cancelled"
    assert post(f"/api/v1/model-imports/{waiting}/cancel").status_code == 409
