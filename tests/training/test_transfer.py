import json
from pathlib import Path

import pytest
from django.core.management import call_command

from apps.accounts.models import AuditEvent, Project
from apps.core.errors import DomainError
from apps.training.model_export import export_model
from apps.training.models import RewardModel
from apps.training.selectors import model_named
from apps.training.transfer import import_model

MANIFEST = {"schema_version": 1, "objective": "bradley_terry", "backbone": "step-encoder"}


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    folder = tmp_path / "polite"
    (folder / "encoder").mkdir(parents=True)
    (folder / "touchstone.json").write_text(json.dumps(MANIFEST))
    (folder / "model.safetensors").write_bytes(b"weights")
    (folder / "encoder" / "vocab.txt").write_text("hello")
    return folder


def test_in_and_out_is_the_same(project: Project, folder: Path, tmp_path: Path) -> None:
    call_command("import_model", "desk", str(folder))
    model = model_named("desk/polite")
    assert (str(model), model.manifest) == ("desk/polite@1", MANIFEST)
    call_command("export_model", "desk/polite@1", str(tmp_path / "out"))
    assert AuditEvent.objects.get(verb="model.exported").target == "desk/polite@1"
    contents = {path.relative_to(folder): path.read_bytes() for path in folder.rglob("*") if path.is_file()}
    out = tmp_path / "out"
    assert (out / "README.md").read_text().startswith("# desk/polite@1\n")
    (out / "README.md").unlink()
    assert {path.relative_to(out): path.read_bytes() for path in out.rglob("*") if path.is_file()} == contents
    with pytest.raises(DomainError, match="not an empty folder"):
        export_model(model=model, folder=out)


@pytest.mark.parametrize(
    "name", ["model.bin", "encoder/weights.pkl", "modeling.py", "model.pt", ".hidden", "model.SAFETENSORS"]
)
def test_other_files_are_refused_by_name(project: Project, folder: Path, name: str) -> None:
    (folder / name).write_bytes(b"?")
    with pytest.raises(DomainError, match=f"{name} may not be part of a model"):
        import_model(project=project, folder=folder, name="polite", by=None)
    assert not RewardModel.objects.exists()


def test_links_are_refused(project: Project, folder: Path) -> None:
    (folder / "notes.txt").symlink_to("/etc/hostname")
    with pytest.raises(DomainError, match=r"notes\.txt is not a regular file"):
        import_model(project=project, folder=folder, name="polite", by=None)


@pytest.mark.parametrize(
    ("manifest", "said"),
    [
        (None, "has no touchstone.json"),
        ("{", "not valid JSON"),
        ("[]", "lacks schema_version"),
        ('{"schema_version": 1}', "lacks objective"),
    ],
)
def test_the_manifest_is_checked(project: Project, folder: Path, manifest: str | None, said: str) -> None:
    (folder / "touchstone.json").unlink()
    if manifest is not None:
        (folder / "touchstone.json").write_text(manifest)
    with pytest.raises(DomainError, match=said):
        import_model(project=project, folder=folder, name="polite", by=None)


def test_without_weights_there_is_no_model(project: Project, folder: Path) -> None:
    (folder / "model.safetensors").unlink()
    with pytest.raises(DomainError, match=r"contains no \.safetensors file"):
        import_model(project=project, folder=folder, name="polite", by=None)


def test_a_name_that_is_no_name(project: Project, folder: Path) -> None:
    with pytest.raises(DomainError, match="cannot be the name of a model"):
        import_model(project=project, folder=folder, name="po lite", by=None)
