"""A process with another artifact store than the installation is refused; the right one never is."""

import json
import uuid
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import boto3
import pytest
from django.core.files.storage import FileSystemStorage, storages
from moto.server import ThreadedMotoServer

from apps.core.errors import Conflict
from apps.core.models import StoreIdentity
from apps.core.storage import artifacts
from apps.core.storage.store_identity import (
    IDENTITY_FILE,
    StoreUnavailable,
    refuse_other_store,
    require_own_store,
    warn_of_unavailable_store,
)
from apps.datasets.models import DatasetVersion
from tests.ports import free_port

pytestmark = pytest.mark.django_db
KEYS = {"access_key": "AKIAEXAMPLE", "secret_key": "secret-of-bucket"}


@pytest.fixture
def use_folder(settings: Any, tmp_path: Path) -> Any:
    def use(name: str) -> Path:
        settings.HOME = tmp_path
        folder = tmp_path / name
        settings.STORAGES = settings.STORAGES | {
            "artifacts": {
                "BACKEND": "django.core.files.storage.FileSystemStorage",
                "OPTIONS": {"location": folder},
            }
        }
        assert isinstance(storages["artifacts"], FileSystemStorage)
        return folder

    return use


@pytest.fixture(scope="module")
def s3() -> Iterator[str]:
    port = free_port()
    server = ThreadedMotoServer(ip_address="127.0.0.1", port=port, verbose=False)
    server.start()
    try:
        yield f"http://127.0.0.1:{port}"
    finally:
        server.stop()


@pytest.fixture
def use_bucket(settings: Any, tmp_path: Path, s3: str) -> Any:
    client = boto3.client(
        "s3",
        endpoint_url=s3,
        region_name="us-east-1",
        aws_access_key_id="AKIAEXAMPLE",
        aws_secret_access_key="x",
    )

    def use(name: str, *, make: bool = True, address: str = s3) -> None:
        if make:
            client.create_bucket(Bucket=name)
        settings.HOME = tmp_path
        options = {"bucket_name": name, "endpoint_url": address, **KEYS}
        settings.STORAGES = settings.STORAGES | {
            "artifacts": {"BACKEND": "storages.backends.s3.S3Storage", "OPTIONS": options}
        }

    return use


def refusal() -> str:
    with pytest.raises((Conflict, StoreUnavailable)) as refused:
        require_own_store(writes=True)
    assert "secret-of-bucket" not in str(refused.value)
    return str(refused.value)


def version_with(artifact: str, project: Any) -> DatasetVersion:
    return DatasetVersion.objects.create(project=project, name="first", version=1, artifact=artifact)


def test_the_first_start_gives_an_identity_that_later_ones_find(use_folder) -> None:
    folder = use_folder("right")
    assert str(folder) in require_own_store(writes=True)
    row = StoreIdentity.objects.get()
    assert json.loads((folder / IDENTITY_FILE).read_text())["identity"] == str(row.identity)
    require_own_store(writes=True)
    assert [path.name for path in (folder / "installation").iterdir()] == [
        "identity.json"
    ]  # no probe is left
    assert StoreIdentity.objects.get().identity == row.identity


def test_another_folder_is_refused_with_both_and_what_to_set(use_folder) -> None:
    right = use_folder("right")
    require_own_store(writes=True)
    wrong = use_folder("wrong")
    said = refusal()
    assert f"it has the folder {wrong} " in said and f"has the folder {right} " in said
    assert "TOUCHSTONE_S3_BUCKET" in said and "Mount that folder" in said
    assert not wrong.exists()
    for check in (warn_of_unavailable_store, refuse_other_store):
        with pytest.raises(Conflict):
            check()


def test_another_bucket_or_a_folder_is_refused(use_bucket, use_folder, s3) -> None:
    use_bucket("right")
    assert require_own_store(writes=True) == f"the bucket right at {s3}"
    use_bucket("wrong")
    assert f"Set TOUCHSTONE_S3_BUCKET=right and TOUCHSTONE_S3_URL={s3}" in refusal()
    use_folder("folder")
    assert f"the installation has the bucket right at {s3}" in refusal()
    use_bucket("right", make=False)
    require_own_store(writes=True)


def test_a_store_that_cannot_be_reached_is_named_and_only_writers_need_it(use_bucket, caplog) -> None:
    use_bucket("absent", make=False)
    assert "the bucket absent at" in (said := refusal()) and "cannot be written: " in said
    use_bucket("gone", make=False, address=f"http://127.0.0.1:{free_port()}")
    assert "cannot be read: EndpointConnectionError" in refusal()
    warn_of_unavailable_store()
    assert "cannot be read: EndpointConnectionError" in caplog.text


def test_a_store_that_takes_no_writes_is_named(use_folder, monkeypatch) -> None:
    folder = use_folder("right")
    require_own_store(writes=True)

    def refuse(*arguments: Any, **named: Any) -> None:
        raise OSError(30, "Read-only file system", str(folder))

    monkeypatch.setattr(FileSystemStorage, "_save", refuse)
    assert f"the folder {folder} " in (said := refusal()) and "cannot be written: OSError: [Errno 30]" in said
    require_own_store(writes=False)


def test_a_store_that_was_emptied_is_not_taken_for_another(use_folder) -> None:
    folder = use_folder("right")
    require_own_store(writes=True)
    (folder / IDENTITY_FILE).unlink()
    assert "was emptied, replaced, or is not mounted" in refusal()
    (folder / IDENTITY_FILE).write_text("{")
    assert "is damaged" in refusal()


def test_an_installation_of_before_gets_its_identity_only_where_its_artifacts_are(
    use_folder, project
) -> None:
    right = use_folder("right")
    (right / "datasets" / "1").mkdir(parents=True)
    (right / "datasets" / "1" / "train.jsonl.zst").write_bytes(b"x")
    version_with("datasets/1", project)
    use_folder("wrong")
    assert "holds none of the artifacts of this installation (datasets/1, ...)" in refusal()
    use_folder("right")
    require_own_store(writes=True)
    use_folder("wrong")
    refusal()


def test_rows_that_were_restored_next_to_their_store_take_its_identity(use_folder, project) -> None:
    use_folder("right")
    require_own_store(writes=True)
    before = StoreIdentity.objects.get().identity
    artifacts.store_content(b"x", "datasets/1")
    StoreIdentity.objects.all().delete()  # as in a database that `restore` has filled
    version_with("datasets/1", project)
    require_own_store(writes=True)
    assert StoreIdentity.objects.get().identity == before


def test_the_store_of_another_installation_is_refused(use_folder) -> None:
    folder = use_folder("right")
    require_own_store(writes=True)
    StoreIdentity.objects.all().delete()
    assert "belongs to another installation" in refusal()
    (folder / IDENTITY_FILE).unlink()
    require_own_store(writes=True)


def test_a_start_that_ended_before_it_was_noted_goes_on(use_folder) -> None:
    folder = use_folder("right")
    identity = uuid.uuid4()
    StoreIdentity.objects.create(identity=identity, place={"folder": "/", "host": "other"})
    (folder / "installation").mkdir(parents=True)
    (folder / IDENTITY_FILE).write_text(json.dumps({"format": 1, "identity": str(identity)}))
    require_own_store(writes=True)
    row = StoreIdentity.objects.get()
    assert row.stored_at is not None and row.place["folder"] == str(folder)
