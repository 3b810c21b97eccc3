"""Folders of pretrained models are named, and read only where they lie outside of what belongs to projects."""

from pathlib import Path
from typing import Any

import pytest
from django.core.exceptions import ImproperlyConfigured

from apps.core.environment import env_folders
from apps.core.errors import DomainError
from apps.core.processes import core_subprocess
from apps.core.storage.model_folders import check_listed, folder_of, name_of

FILES = ("config.json", "tokenizer.json", "model.safetensors")


def model_in(folder: Path) -> Path:
    folder.mkdir(parents=True)
    for name in FILES:
        (folder / name).write_text("{}")
    return folder


@pytest.fixture
def listed(own_home: None, settings: Any, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = model_in(tmp_path_factory.mktemp("models") / "tiny")
    settings.MODEL_DIRS = {"tiny": str(folder)}
    return folder


def test_a_listed_folder_is_found_by_its_name(listed: Path) -> None:
    assert check_listed("tiny", pointer="/folder") == "tiny"
    assert folder_of("tiny") == listed


@pytest.mark.parametrize("given", ["", "other", "/", "/etc", "../tiny", "tiny/", "tiny/../tiny", "~", "."])
def test_everything_else_is_answered_alike(listed: Path, given: str) -> None:
    """Whether there is such a folder makes no difference, nor whether it holds a model."""
    message = f"{given!r} is not the name of a model folder; TOUCHSTONE_MODEL_DIRS lists tiny."
    for name, expected in ((given, message), (str(listed), message.replace(repr(given), repr(str(listed))))):
        with pytest.raises(DomainError) as error:
            check_listed(name, pointer="/folder")
        assert (error.value.message, error.value.pointer) == (expected, "/folder")


def test_a_path_that_was_stored_is_taken_where_exactly_it_is_listed(listed: Path) -> None:
    assert name_of(str(listed)) == "tiny"
    assert folder_of(str(listed)) == listed
    for path in (f"{listed}/", f"{listed}/../tiny", str(listed.parent)):
        with pytest.raises(DomainError, match="have the operator add it to TOUCHSTONE_MODEL_DIRS"):
            folder_of(path)


@pytest.mark.parametrize("file", FILES)
def test_a_link_out_of_it_is_not_followed(listed: Path, tmp_path: Path, file: str) -> None:
    (tmp_path / "secret").write_text("{}")
    (listed / file).unlink()
    (listed / file).symlink_to(tmp_path / "secret")
    with pytest.raises(DomainError, match="holds links that lead out of it") as error:
        folder_of("tiny")
    assert str(tmp_path) not in error.value.message
    (listed / file).unlink()
    (listed / "real").write_text("{}")
    (listed / file).symlink_to("real")
    if file.endswith(".json"):
        assert folder_of("tiny") == listed, "one that stays within is no harm"


def test_never_below_the_home_or_the_store(listed: Path, settings: Any, tmp_path: Path) -> None:
    for place in (tmp_path / "artifacts" / "models" / "run-1-1", tmp_path / "runs" / "1" / "model"):
        link = listed.parent / place.name
        link.symlink_to(model_in(place))
        for path in (place, link):
            settings.MODEL_DIRS = {"theirs": str(path)}
            with pytest.raises(DomainError, match="lies below the home or the artifact store") as error:
                folder_of("theirs")
            assert str(path) not in error.value.message


def test_what_is_wrong_with_a_folder_is_said_without_its_path(listed: Path) -> None:
    (listed / "tokenizer.json").unlink()
    with pytest.raises(DomainError, match=r"has no tokenizer\.json; save_pretrained") as error:
        folder_of("tiny")
    assert str(listed) not in error.value.message


def test_a_child_tells_no_path(listed: Path, tmp_path: Path) -> None:
    said = f"{listed}/config.json and {tmp_path}/runs/1/model are damaged"
    assert core_subprocess.told_error(tmp_path, said) == "tiny/config.json and runs/1/model are damaged"


@pytest.mark.parametrize(
    "value",
    [
        "/models",
        "a=relative",
        "embedded=/models",
        "a b=/models",
        "a/b=/m",
        "a=HOME/artifacts/models/1",
        "a=HOME",
        "a=/",
    ],
)
def test_the_setting_fails_loudly(monkeypatch: pytest.MonkeyPatch, tmp_path: Path, value: str) -> None:
    monkeypatch.setenv("TOUCHSTONE_MODEL_DIRS", value.replace("HOME", str(tmp_path)))
    with pytest.raises(ImproperlyConfigured, match="TOUCHSTONE_MODEL_DIRS"):
        env_folders("TOUCHSTONE_MODEL_DIRS", outside=tmp_path)


def test_the_setting(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("TOUCHSTONE_MODEL_DIRS", "qwen-2.5=/models/qwen, bert_base=/models/bert")
    found = env_folders("TOUCHSTONE_MODEL_DIRS", outside=tmp_path)
    assert found == {"qwen-2.5": "/models/qwen", "bert_base": "/models/bert"}
