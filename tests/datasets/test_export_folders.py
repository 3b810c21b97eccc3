"""Formats of several files: by the command as a folder or a zip file; by the page, the API and a job as a zip file."""

import builtins
import io
import json
import zipfile
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from django.core.management import CommandError, call_command
from django.test import Client

from apps.accounts.models import Project, Scope
from apps.accounts.services import create_api_key
from apps.core.errors import DomainError
from apps.datasets import export_jobs
from apps.datasets.exports.accepted import Acceptance
from apps.datasets.exports.formats import write_folder
from apps.datasets.exports.parquet_files import MISSING, ParquetShards
from apps.datasets.models import DatasetVersion, Export
from apps.datasets.tasks import advance_exports
from tests.datasets.feedback import freeze
from tests.datasets.test_export_jobs import stored
from workers.schema.spooled_trajectories import SpooledTrajectories
from workers.schema.storage import read_records, stream_records

FILES = {"dataset_info.json", "kto.jsonl", "preference.jsonl", "sft.jsonl"}


@pytest.fixture
def project(traps: DatasetVersion) -> Project:
    return traps.project


@pytest.fixture
def headers(project: Project) -> dict[str, str]:
    return {"Authorization": f"Bearer {create_api_key(project=project, scopes=[Scope.TRAIN])[1]}"}


def command(*arguments: str) -> dict[str, Any]:
    out = io.StringIO()
    call_command("export_dataset", "desk/first", *arguments, "--json", stdout=out, stderr=io.StringIO())
    result: dict[str, Any] = json.loads(out.getvalue())
    return result


def names(data: bytes) -> set[str]:
    return set(zipfile.ZipFile(io.BytesIO(data)).namelist())


def test_a_folder_or_a_zip_file(traps: DatasetVersion, tmp_path: Path) -> None:
    folder, packed = tmp_path / "new" / "folder", tmp_path / "packed.zip"
    result = command("--format", "llamafactory", "--out", str(folder))
    assert {path.name for path in folder.iterdir()} == FILES
    assert result["left_out"]["preference: ties"] == 1 and result["lines"] > 0
    assert command("--format", "llamafactory", "--out", str(packed)) == result
    assert names(packed.read_bytes()) == FILES
    assert zipfile.ZipFile(packed).read("sft.jsonl") == (folder / "sft.jsonl").read_bytes()
    with pytest.raises(CommandError, match="is not empty"):
        command("--format", "llamafactory", "--out", str(folder))


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ((), "Choose --format from"),
        (("--format", "verl"), "name a folder, or a file that ends with .zip"),
        (("--format", "trl", "--private"), "--private belongs to --push"),
        (("--format", "trl", "--push", "hf://datasets/a/b"), "--push takes formats of several files"),
        (("--format", "trl", "--accepted-by", "outcome"), "trl does not select accepted trajectories"),
        (("--format", "trl-sft", "--threshold", "3"), "from 0 to 1"),
        (
            ("--format", "trl-sft", "--accepted-by", "rating", "--criterion", "c"),
            "belong to accepted_by `score`",
        ),
    ],
)
def test_the_command_refuses(traps: DatasetVersion, arguments: tuple[str, ...], message: str) -> None:
    with pytest.raises((CommandError, DomainError), match=message):
        command(*arguments)


def test_a_rule_of_acceptance_is_checked() -> None:
    assert Acceptance.of(None, "polite", None) == Acceptance(by="score", criterion="polite", threshold=0.75)
    with pytest.raises(DomainError, match="choose from auto, rating, demonstration, outcome, score"):
        Acceptance.of("liking", None, None)


def test_pages_and_the_api_send_zip_files(
    traps: DatasetVersion, researcher_client: Client, client: Client, headers: dict[str, str]
) -> None:
    page = researcher_client.get(f"/p/desk/datasets/{traps.pk}/export/llamafactory/")
    assert page["Content-Type"] == "application/zip" and page["Content-Disposition"].endswith(
        'all-llamafactory.zip"'
    )
    assert names(b"".join(page.streaming_content)) == FILES  # type: ignore[arg-type]
    assert json.loads(page["X-Touchstone-Left-Out"])["preference: ties"] == 1
    url = "/api/v1/projects/desk/datasets/first/export"
    answer = client.get(f"{url}?format=verl&split=train&accepted_by=outcome", headers=headers)
    assert names(b"".join(answer.streaming_content)) == {
        f"{part}/train.parquet" for part in ("rl", "sft", "rm")
    }  # type: ignore[arg-type]
    refused = client.get(f"{url}?format=trl&accepted_by=outcome", headers=headers)
    assert refused.status_code in (400, 422)


def test_every_format_of_lines_says_what_it_leaves_out(
    traps: DatasetVersion, researcher_client: Client
) -> None:
    for format in ("rewardbench", "trl-stepwise", "trl-sft", "axolotl-dpo", "openrlhf-prompts"):
        answer = researcher_client.get(f"/p/desk/datasets/{traps.pk}/export/{format}/")
        streamed = dict(json.loads(answer["X-Touchstone-Left-Out"]))
        by_command = command("--format", format, "--out", "/dev/null")["left_out"]
        assert streamed == by_command and streamed, format
        b"".join(answer.streaming_content)  # type: ignore[arg-type]


def test_a_worker_packs_a_large_one(
    traps: DatasetVersion, researcher_client: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(export_jobs, "BACKGROUND_EXPORT_RECORDS", 5)
    page = f"/p/desk/datasets/{traps.pk}/"
    assert 'value="llamafactory/"' in researcher_client.get(page).content.decode()
    researcher_client.post(f"{page}export/", {"what": "llamafactory/"})
    advance_exports()
    made = Export.objects.get()
    assert made.state == "succeeded", made.error
    assert names(stored(made)) == FILES and made.left_out["preference: ties"] == 1 and made.lines > 0


def test_without_pyarrow_it_says_so(
    traps: DatasetVersion, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    real = builtins.__import__

    def without(name: str, *rest: Any, **more: Any) -> Any:
        if name.split(".")[0] == "pyarrow":
            raise ImportError(name)
        return real(name, *rest, **more)

    monkeypatch.setattr(builtins, "__import__", without)
    with pytest.raises((CommandError, DomainError)) as caught:
        command("--format", "parquet", "--out", str(tmp_path / "out"))
    assert MISSING in str(caught.value)


def test_the_card_names_no_annotator(traps: DatasetVersion, tmp_path: Path) -> None:
    by_ann = freeze(traps.project, "by-ann", filters={"annotators": ["ann", "ben"]})
    for _ in write_folder(by_ann, "parquet", None, Counter(), tmp_path):
        pass
    card = (tmp_path / "README.md").read_text()
    assert "'annotators': '2 chosen'" in card and "'ann'" not in card and "annotators: 2;" in card


def test_shards_have_their_number_in_their_names(tmp_path: Path) -> None:
    arrow = pytest.importorskip("pyarrow")
    shards = ParquetShards(tmp_path, "train", arrow.schema([("x", arrow.string())]), shard_bytes=1)
    for number in range(600):
        shards.add({"x": None if number < 300 else str(number)})
    assert [path.name for path in shards.close()] == [f"train-{n:05}-of-00003.parquet" for n in range(3)]
    tables = [arrow.parquet.read_table(path) for path in sorted(tmp_path.iterdir())]
    assert len({table.schema for table in tables}) == 1 and sum(table.num_rows for table in tables) == 600


def test_records_are_streamed_with_few_trajectories_in_memory(
    traps: DatasetVersion, monkeypatch: Any
) -> None:
    from apps.datasets.selectors import data_folder

    path = data_folder(traps) / "train.jsonl.zst"
    whole = list(read_records(path))
    kept = []
    monkeypatch.setattr(SpooledTrajectories, "_keep", _counted(SpooledTrajectories._keep, kept), raising=True)
    monkeypatch.setattr(SpooledTrajectories.__init__, "__kwdefaults__", {"kept": 2})
    assert list(stream_records(path)) == whole
    assert max(kept) == 2 and len(kept) > 10


def _counted(keep: Any, kept: list[int]) -> Any:
    def counting(self: Any, key: str, trajectory: Any) -> None:
        keep(self, key, trajectory)
        kept.append(len(self._decoded))

    return counting
