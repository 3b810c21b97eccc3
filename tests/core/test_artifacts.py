from pathlib import Path
from typing import Any

import pytest
from django.core.files.storage import InMemoryStorage, storages

from apps.core.errors import DomainError, NotFound
from apps.core.storage import artifacts


class Remote(InMemoryStorage):
    """As S3: what is below a prefix exists, the prefix does not."""

    def exists(self, name: str) -> bool:
        try:
            self.open(name).close()
        except (FileNotFoundError, IsADirectoryError):
            return False
        return True


@pytest.fixture(params=["folder", "remote"])
def store(
    request: pytest.FixtureRequest, tmp_path: Path, settings: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A store with local paths, and one without (as S3 is)."""
    settings.HOME = tmp_path / "home"
    if request.param == "remote":
        remote = Remote()
        monkeypatch.setattr(artifacts, "_storage", lambda: remote)
        monkeypatch.setattr(artifacts, "_local_path", lambda name: None)
    else:
        from django.core.files.storage import FileSystemStorage

        local = FileSystemStorage(location=tmp_path / "store")
        monkeypatch.setattr(artifacts, "_storage", lambda: local)


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    (tmp_path / "tree" / "deep").mkdir(parents=True)
    (tmp_path / "tree" / "a.txt").write_text("a")
    (tmp_path / "tree" / "deep" / "b.bin").write_bytes(b"\0b")
    return tmp_path / "tree"


@pytest.mark.usefixtures("store")
def test_a_tree_comes_back_as_it_was(tree: Path) -> None:
    artifacts.store_tree(tree, "models/1")
    staged = artifacts.stage("models/1")
    files = {
        path.relative_to(staged).as_posix(): path.read_bytes() for path in staged.rglob("*") if path.is_file()
    }
    assert files == {"a.txt": b"a", "deep/b.bin": b"\0b"}
    artifacts.delete_tree("models/1")
    with pytest.raises(NotFound, match="models/1 is not in the store"):
        artifacts.stage("models/1")


@pytest.mark.usefixtures("store")
def test_a_file_is_replaced_under_its_name(tree: Path, tmp_path: Path) -> None:
    artifacts.store_file(tree / "a.txt", "uploads/x")
    (tmp_path / "other").write_text("other")
    artifacts.store_file(tmp_path / "other", "uploads/x")
    assert artifacts.stage("uploads/x").read_text() == "other"


def test_content_is_replaced_in_one_step_in_s3(monkeypatch: pytest.MonkeyPatch) -> None:
    """A reader in between finds what was there before."""
    import boto3
    from moto import mock_aws
    from storages.backends.s3 import S3Storage

    keys = {"aws_access_key_id": "AKIAEXAMPLE", "aws_secret_access_key": "secret"}
    with mock_aws():
        client = boto3.client("s3", region_name="us-east-1", **keys)
        client.create_bucket(Bucket="artifacts")
        remote = S3Storage(bucket_name="artifacts", access_key=keys["aws_access_key_id"], secret_key="secret")
        monkeypatch.setattr(artifacts, "_storage", lambda: remote)
        monkeypatch.setattr(remote, "delete", lambda name: pytest.fail(f"{name} is deleted"))
        for content in (b"the first, which is longer", b"other"):
            assert artifacts.replace_content(content, "run-files/1/x") == "run-files/1/x"
            assert artifacts.read_file("run-files/1/x") == content


@pytest.mark.usefixtures("store")
@pytest.mark.parametrize("name", ["", "/etc/passwd", "../out", "a/../../b"])
def test_names_stay_in_the_store(name: str) -> None:
    with pytest.raises(DomainError, match="is no name for an artifact"):
        artifacts.stage(name)


@pytest.mark.usefixtures("store")
def test_an_empty_folder_is_refused(tmp_path: Path) -> None:
    with pytest.raises(DomainError, match="nothing to store"):
        artifacts.store_tree(tmp_path, "empty/1")


def test_the_configured_store_is_the_homes() -> None:
    assert artifacts._storage() is storages["artifacts"]


@pytest.mark.usefixtures("store")
@pytest.mark.parametrize("at", ["link.txt", "deep/link.txt", "folder"])
def test_links_are_not_stored(tree: Path, tmp_path: Path, at: str) -> None:
    """A link could bring in a file from anywhere."""
    (tmp_path / "secret").mkdir()
    (tmp_path / "secret" / "key").write_text("secret")
    (tree / at).symlink_to(tmp_path / "secret" if at == "folder" else tmp_path / "secret" / "key")
    with pytest.raises(DomainError, match="is a link"):
        artifacts.store_tree(tree, "models/1")
    if at != "folder":
        with pytest.raises(DomainError, match="is a link"):
            artifacts.store_file(tree / at, "models/2")


@pytest.mark.usefixtures("store")
def test_files_of_a_tree_have_plain_names(tree: Path) -> None:
    (tree / "a b.txt").write_text("a")
    with pytest.raises(DomainError, match=r"'a b\.txt' cannot be part of a stored name"):
        artifacts.store_tree(tree, "models/1")


def test_a_link_in_the_store_leads_to_nothing(own_home: None, settings: Any, tmp_path: Path) -> None:
    (tmp_path / "outside").mkdir()
    (tmp_path / "outside" / "key").write_text("secret")
    (tmp_path / "artifacts" / "models").mkdir(parents=True)
    (tmp_path / "artifacts" / "models" / "1").symlink_to(tmp_path / "outside")
    for read in (artifacts.stage, artifacts.is_stored, artifacts.delete_tree):
        with pytest.raises(DomainError, match="leads out of the artifact store"):
            read("models/1/key")


def test_the_store_itself_may_be_a_link(own_home: None, tmp_path: Path) -> None:
    (tmp_path / "disk").mkdir()
    (tmp_path / "artifacts").symlink_to(tmp_path / "disk")
    artifacts.store_content(b"a", "models/1")
    assert artifacts.stage("models/1").read_bytes() == b"a"
