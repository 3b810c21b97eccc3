"""`export_dataset --push`: the real `huggingface_hub` against a small server that speaks its HTTP API."""

import io
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from django.core.management import CommandError, call_command

from apps.accounts.models import AuditEvent, Project
from apps.core import hub_push as pushing
from apps.core.errors import DomainError
from tests.datasets.feedback import freeze, import_pairs, pair
from tests.datasets.hub_server import TOKEN, Hub, running_hub

# Of huggingface_hub and its client among themselves.
pytestmark = pytest.mark.filterwarnings("ignore:Use 'content=:DeprecationWarning")
NAME = "hf://datasets/org/set"


@pytest.fixture
def hub(monkeypatch: pytest.MonkeyPatch) -> Iterator[Hub]:
    pytest.importorskip("huggingface_hub")
    pytest.importorskip("pyarrow")
    from huggingface_hub import constants

    monkeypatch.setenv("HF_TOKEN", TOKEN)
    monkeypatch.setenv("NO_PROXY", "127.0.0.1")
    with running_hub() as server:
        # What HF_ENDPOINT and HF_HUB_OFFLINE set when the library is first imported.
        monkeypatch.setattr(constants, "ENDPOINT", server.url)
        monkeypatch.setattr(constants, "HF_HUB_OFFLINE", False)
        monkeypatch.setattr(constants, "HF_HUB_DISABLE_XET", True)  # by LFS; Xet is a service of its own
        yield server


def push(*more: str) -> dict[str, Any]:
    out, error = io.StringIO(), io.StringIO()
    call_command("export_dataset", "desk/first", "--push", NAME, *more, "--json", stdout=out, stderr=error)
    assert TOKEN not in out.getvalue() + error.getvalue()
    result: dict[str, Any] = json.loads(out.getvalue())
    return result


def test_a_folder_becomes_a_commit(project: Project, hub: Hub) -> None:
    import_pairs(project, [pair(f"x{n}") for n in range(20)])
    freeze(project)
    result = push("--private")
    assert hub.created[0] | {"name": "set", "organization": "org", "type": "dataset"} == hub.created[0]
    assert hub.created[0].get("private") is True or hub.created[0].get("visibility") == "private"
    assert result["revision"] == f"{1:040x}" and result["url"] == f"{hub.url}/datasets/org/set"
    assert (result["format"], result["lines"], result["left_out"]) == ("parquet", 20, {})
    assert hub.commits == ["Export desk/first@1 as parquet"]
    names = sorted(hub.files)
    assert "README.md" in names and "data/pairwise/train-00000-of-00001.parquet" in names
    assert hub.files["data/pairwise/train-00000-of-00001.parquet"][:4] == b"PAR1"
    recorded = AuditEvent.objects.get(verb="dataset.exported")
    assert recorded.data == {"format": "parquet", "pushed_to": NAME}


def test_nothing_private_goes_to_a_dataset_that_is_public(project: Project, hub: Hub) -> None:
    hub.private = False
    import_pairs(project, [pair(f"x{n}") for n in range(4)])
    freeze(project)
    with pytest.raises((CommandError, DomainError), match="exists and is public, so nothing was pushed"):
        push("--private")
    assert not hub.commits


def test_files_of_an_earlier_push_are_removed(project: Project, hub: Hub, tmp_path: Path) -> None:
    hub.files["data/pairwise/train-00000-of-00009.parquet"] = b"PAR1 old"
    hub.files["NOTES.md"] = b"kept"
    import_pairs(project, [pair(f"x{n}") for n in range(20)])
    freeze(project)
    push("--out", str(tmp_path / "kept"))
    assert "data/pairwise/train-00000-of-00009.parquet" not in hub.files and "NOTES.md" in hub.files
    assert (tmp_path / "kept" / "README.md").read_bytes() == hub.files["README.md"]


def test_a_wrong_token_is_refused_without_being_named(
    project: Project, hub: Hub, monkeypatch: pytest.MonkeyPatch
) -> None:
    import_pairs(project, [pair(f"x{n}") for n in range(4)])
    freeze(project)
    monkeypatch.setenv("HF_TOKEN", "hf_wrong")
    with pytest.raises((CommandError, DomainError), match="Set HF_TOKEN to a token that may write") as caught:
        push()
    assert "hf_wrong" not in str(caught.value)


def test_a_hub_that_is_not_there(tmp_path: Path, hub: Hub, monkeypatch: pytest.MonkeyPatch) -> None:
    from huggingface_hub import constants

    monkeypatch.setattr(constants, "ENDPOINT", "http://127.0.0.1:9")
    (tmp_path / "README.md").write_text("hello")
    with pytest.raises(
        DomainError, match=r"The hub at http://127.0.0.1:9 could not be reached .* HF_ENDPOINT"
    ):
        pushing.push_folder(
            tmp_path, NAME, kind="dataset", private=False, message="Export", replaced="data/**"
        )


@pytest.mark.parametrize(
    "name", ["org/set", "hf://datasets/set", "hf://models/org/set", "hf://datasets/o/a b"]
)
def test_names(name: str) -> None:
    with pytest.raises(DomainError, match="is no dataset of a hub"):
        pushing.require_hub_name(name, kind="dataset")
