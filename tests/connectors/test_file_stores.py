"""Buckets, folders and the hub: every file once, again where it changed."""

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from io import StringIO
from pathlib import Path
from typing import Any

import pytest
from django.core.management import call_command

from apps.accounts.models import Project
from apps.connectors import services
from apps.connectors.models import Connector, PulledDocument
from apps.connectors.services import ConnectorSpec
from apps.connectors.sources import s3 as s3_source
from apps.core.errors import DomainError
from apps.trajectories.hub_datasets import HubName
from apps.trajectories.models import Trajectory
from tests.connectors.conftest import pull
from tests.connectors.contract_server import Answer, Call, Peer, serve
from tests.connectors.hub_server import HubServer

ROOT = Path(__file__).parents[2]


def chat(*numbers: int) -> bytes:
    """JSON lines of conversations."""
    rows = (
        {"messages": [{"role": "user", "content": f"Q{n}"}, {"role": "assistant", "content": f"A{n}"}]}
        for n in numbers
    )
    return b"".join(json.dumps(row).encode() + b"\n" for row in rows)


def connect(project: Project, kind: str, secret: str = "", **given: Any) -> Connector:
    spec = ConnectorSpec(name=kind, settle_minutes=0, **given)
    return services.create_connector(project=project, kind=kind, spec=spec, secret=secret, by=None)


@pytest.fixture(scope="module")
def moto() -> Iterator[str]:
    from moto.server import ThreadedMotoServer

    server = ThreadedMotoServer(ip_address="127.0.0.1", port=0, verbose=False)
    server.start()
    host, port = server.get_host_and_port()
    yield f"http://{host}:{port}"
    server.stop()


@pytest.fixture
def bucket(moto: str, outgoing_here: None) -> Iterator[Any]:
    import boto3

    client = boto3.client(
        "s3",
        endpoint_url=moto,
        region_name="us-east-1",
        aws_access_key_id="AKID",
        aws_secret_access_key="secret",
    )
    client.create_bucket(Bucket="logs")
    yield client
    for entry in client.list_objects_v2(Bucket="logs").get("Contents", []):
        client.delete_object(Bucket="logs", Key=entry["Key"])
    client.delete_bucket(Bucket="logs")


def s3_connector(project: Project, moto: str, **options: str) -> Connector:
    given = {"bucket": "logs", "prefix": "runs/"} | options
    return connect(project, "s3", "secret", address=moto, username="AKID", options=given)


def test_a_bucket(project: Project, moto: str, bucket: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(s3_source, "_PAGE", 2)
    monkeypatch.setattr(s3_source, "_PART", 100)
    names = ["runs/a.jsonl", "runs/deep/b c+ü&=.jsonl", "runs/c.jsonl", "runs/d.jsonl"]
    for number, name in enumerate(names):
        bucket.put_object(Bucket="logs", Key=name, Body=chat(2 * number, 2 * number + 1))
    bucket.put_object(Bucket="logs", Key="runs/empty/", Body=b"")
    bucket.put_object(Bucket="logs", Key="other/e.jsonl", Body=chat(99))
    bucket.put_object(Bucket="logs", Key="runs/bad.jsonl", Body=b'{"a": 1}\n')
    connector = s3_connector(project, moto)
    run = pull(connector)
    assert (run.state, run.created, run.rejected_count) == ("succeeded", 8, 1), run.error
    assert run.rejected[0]["source"] == "runs/bad.jsonl"
    assert set(PulledDocument.objects.values_list("source_id", flat=True)) == {*names, "runs/bad.jsonl"}
    run = pull(connector)
    assert (run.created, run.documents) == (0, 0)  # equal ETags are not fetched
    bucket.put_object(Bucket="logs", Key="runs/a.jsonl", Body=chat(0, 1, 50))
    run = pull(connector)
    assert (run.created, run.duplicates, run.documents) == (1, 2, 1)


def test_a_bucket_by_suffix_and_format(project: Project, moto: str, bucket: Any) -> None:
    bucket.put_object(Bucket="logs", Key="runs/a.jsonl", Body=chat(1))
    bucket.put_object(Bucket="logs", Key="runs/a.txt", Body=b"no JSON")
    run = pull(s3_connector(project, moto, suffix=".jsonl", format="openai"))
    assert (run.state, run.created, run.rejected) == ("succeeded", 1, [])
    assert Trajectory.objects.get().source_format == "openai"


def test_a_bucket_that_is_not_there(project: Project, moto: str, bucket: Any) -> None:
    run = pull(s3_connector(project, moto, bucket="none-such"))
    assert "answered 404" in run.error


def test_requests_are_signed_as_botocore_signs_them(project: Project, outgoing_here: None) -> None:
    """The server checks the signature with botocore itself."""
    seen: list[Call] = []

    class Signed(Peer):
        def answer(self, call: Call) -> Answer:
            seen.append(call)
            empty = '<ListBucketResult xmlns="http://s3.amazonaws.com/doc/2006-03-01/"><IsTruncated>false</IsTruncated></ListBucketResult>'
            return Answer(raw=f'<?xml version="1.0"?>{empty}'.encode())

    with serve(Signed()) as url:
        run = pull(s3_connector(project, url, prefix="a b/c+d~é"))
        assert run.state == "succeeded", run.error
        (call,) = seen
        assert call.headers["authorization"] == _signature(url, call)


def _signature(url: str, call: Call) -> str:
    from urllib.parse import quote, urlencode

    from botocore.auth import S3SigV4Auth
    from botocore.awsrequest import AWSRequest
    from botocore.credentials import Credentials

    query = urlencode(sorted(call.query.items()), safe="-_.~", quote_via=quote)
    request = AWSRequest(
        "GET", f"{url}{call.path}?{query}", headers={"X-Amz-Date": call.headers["x-amz-date"]}
    )
    request.context["payload_signing_enabled"] = False
    request.context["timestamp"] = call.headers["x-amz-date"]
    signer = S3SigV4Auth(Credentials("AKID", "secret"), "s3", "us-east-1")
    request.headers["X-Amz-Content-SHA256"] = call.headers["x-amz-content-sha256"]
    canonical = signer.canonical_request(request)
    text = signer.string_to_sign(request, canonical)
    scope = signer.scope(request)
    names = signer.signed_headers(signer.headers_to_sign(request))
    return f"AWS4-HMAC-SHA256 Credential={scope}, SignedHeaders={names}, Signature={signer.signature(text, request)}"


INSPECT = {
    "version": 2,
    "status": "success",
    "eval": {"task": "sums", "model": "m", "run_id": "r", "created": "2026-01-01T00:00:00Z"},
    "samples": [
        {
            "id": number,
            "epoch": 1,
            "input": f"Q{number}",
            "target": "4",
            "messages": [
                {"role": "user", "content": f"Q{number}"},
                {"role": "assistant", "content": f"A{number}"},
            ],
            "scores": {"match": {"value": "C"}},
        }
        for number in range(2)
    ],
}


@pytest.fixture
def folder(settings: Any, tmp_path: Path) -> Path:
    settings.IMPORT_DIRS = {"evals": str(tmp_path)}
    (tmp_path / "sub").mkdir()
    (tmp_path / "sub" / "log.json").write_text(json.dumps(INSPECT))
    outside = tmp_path.parent / "outside.json"
    outside.write_text(json.dumps(INSPECT))
    (tmp_path / "link.json").symlink_to(outside)
    (tmp_path / "notes.txt").write_text("none")
    return tmp_path


def test_a_folder_of_inspect_logs(project: Project, folder: Path) -> None:
    connector = connect(project, "inspect", options={"folder": "evals"})
    run = pull(connector)
    assert (run.state, run.created, run.rejected) == ("succeeded", 2, []), run.error
    assert [row.source_id for row in PulledDocument.objects.all()] == ["sub/log.json"]
    assert pull(connector).documents == 0
    more = INSPECT | {"samples": [*INSPECT["samples"], INSPECT["samples"][0] | {"id": 9, "input": "Q9"}]}  # type: ignore[misc, index, operator, dict-item]
    (folder / "sub" / "log.json").write_text(json.dumps(more))
    assert pull(connector).created == 1


def test_a_log_that_is_being_written_waits(project: Project, folder: Path) -> None:
    connector = connect(project, "inspect", options={"folder": "evals"})
    Connector.objects.update(settle_minutes=5)
    connector.refresh_from_db()
    run = pull(connector)
    assert (run.created, run.waiting) == (0, 1)
    old = (datetime.now(UTC) - timedelta(hours=1)).timestamp()
    os.utime(folder / "sub" / "log.json", (old, old))
    run = pull(connector)
    assert (run.created, run.waiting) == (2, 0)


def test_only_listed_folders_are_read(project: Project, folder: Path) -> None:
    assert (
        "TOUCHSTONE_IMPORT_DIRS lists evals"
        in pull(connect(project, "inspect", options={"folder": "/etc"})).error
    )


class InspectView(Peer):
    """`inspect view`, as its fastapi_server answers."""

    log = json.dumps(INSPECT).encode()

    def answer(self, call: Call) -> Answer:
        name = "file:///logs/a%20b.json".replace("%20", " ")
        if call.headers.get("authorization") != "token":
            return Answer(raw=b"Unauthorized", status=401)
        if call.path == "/api/log-files":
            files = [{"name": name, "mtime": 1767225600000.5, "task": "sums", "task_id": "t"}]
            return Answer({"response_type": "full", "files": files})
        if call.path == "/api/log-size/file%3A%2F%2F%2Flogs%2Fa%20b.json":
            return Answer(len(self.log))
        assert call.path == "/api/log-bytes/file%3A%2F%2F%2Flogs%2Fa%20b.json", call.path
        return Answer(raw=self.log[int(call.query["start"]) : int(call.query["end"]) + 1])


def test_inspect_view(project: Project, outgoing_here: None, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("apps.connectors.sources.inspect_logs._PART", 100)
    with serve(InspectView()) as url:
        run = pull(connect(project, "inspect", "token", address=url))
        assert (run.state, run.created, run.rejected) == ("succeeded", 2, []), run.error


@pytest.mark.parametrize(
    ("text", "repository", "revision"),
    [
        ("hf://datasets/team/runs", "team/runs", "main"),
        ("hf://datasets/team/runs@v1.0", "team/runs", "v1.0"),
        ("team/runs@refs/pr/1", "team/runs", "refs/pr/1"),
    ],
)
def test_names_of_the_hub(text: str, repository: str, revision: str) -> None:
    assert HubName.parse(text) == HubName(repository, revision)


@pytest.mark.parametrize("text", ["runs", "a/b/c", "../b", "a/b@../c", "https://example.org/a/b", "a/ b", ""])
def test_names_that_are_none_of_the_hub(text: str) -> None:
    with pytest.raises(DomainError, match="names no data set of the hub"):
        HubName.parse(text)


HUB = """
import io, json, sys
from apps.core.errors import DomainError
from apps.trajectories.formats.stream import read_records
from apps.trajectories.hub_datasets import HubDataset, HubName
try:
    dataset = HubDataset(HubName.parse(sys.argv[1]), split=sys.argv[2])
    found = {}
    for part in dataset.parts():
        file = io.BytesIO()
        rows = dataset.write(part, file)
        file.seek(0)
        records = list(read_records(file, limit=2**20))
        assert len(records) == rows
        found[part.name] = [record.document["messages"][0]["content"] for record in records]
    print(json.dumps({"commit": dataset.commit, "parts": found}))
except DomainError as error:
    print(json.dumps({"error": error.message}))
"""


def read_hub(url: str, home: Path, name: str, split: str = "") -> dict[str, Any]:
    """In a process of its own: the libraries read the hub's address when they are imported."""
    environment = os.environ | {"HF_ENDPOINT": url, "HF_HOME": str(home), "HF_HUB_DISABLE_TELEMETRY": "1"}
    # The server is a thread of this process, which other tests slow down.
    environment |= {"HF_HUB_ETAG_TIMEOUT": "100", "HF_HUB_DOWNLOAD_TIMEOUT": "100"}
    # A machine without the hub may say so for all of its processes; this hub is here.
    environment |= dict.fromkeys(("HF_HUB_OFFLINE", "HF_DATASETS_OFFLINE", "TRANSFORMERS_OFFLINE"), "0")
    environment["DJANGO_SETTINGS_MODULE"] = "apps.config.settings"
    done = subprocess.run(
        [sys.executable, "-c", HUB, name, split],
        cwd=ROOT, env=environment, capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr[-2000:]
    found: dict[str, Any] = json.loads(done.stdout)
    return found


@pytest.mark.slow
def test_a_dataset_of_the_hub_is_read_by_datasets(tmp_path: Path) -> None:
    files = {
        "data/train-00000-of-00002.jsonl": chat(0, 1, 2),
        "data/train-00001-of-00002.jsonl": chat(3),
        "data/test-00000-of-00001.jsonl": chat(4),
    }
    server = HubServer(files)
    with serve(server) as url:
        found = read_hub(url, tmp_path, "hf://datasets/team/runs")
        assert found.get("commit") == "1" * 40, found
        assert found["parts"] == {
            "default/train/1 of 2": ["Q0", "Q1", "Q2"],
            "default/train/2 of 2": ["Q3"],
            "default/test/1 of 1": ["Q4"],
        }
        assert list(read_hub(url, tmp_path, "team/runs", "test")["parts"]) == ["default/test/1 of 1"]
        assert (
            "has no split 'dev'; it has train, test." in read_hub(url, tmp_path, "team/runs", "dev")["error"]
        )
        assert "is not on the hub" in read_hub(url, tmp_path, "team/none")["error"]
        assert "has no revision 'old'" in read_hub(url, tmp_path, "team/runs@old")["error"]
        server.files[".huggingface.yaml"] = b"configs: []"
        assert "has a file .huggingface.yaml" in read_hub(url, tmp_path, "team/runs")["error"]
        del server.files[".huggingface.yaml"]
        server.card = {"configs": [{"config_name": "default", "data_files": "/etc/passwd"}]}
        assert "outside of its repository" in read_hub(url, tmp_path, "team/runs")["error"]
    assert "is not reachable" in read_hub(url, tmp_path, "team/runs")["error"]


def test_the_hub_as_a_source(project: Project, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its parts are documents: read again only at another commit."""
    from apps.connectors.sources import huggingface
    from apps.trajectories.hub_datasets import HubPart

    class Dataset:
        commit = "1" * 40

        def __init__(self, name: HubName, **options: Any) -> None:
            assert options["token"] is False  # never that of the machine
            self.name, self.options = name, options

        def parts(self) -> Iterator[HubPart]:
            yield from (HubPart(f"default/train/{n} of 2", "default", "train", n, 2) for n in (1, 2))

        def write(self, part: HubPart, out: Any, pause: Any) -> int:
            out.write(chat(part.index))
            return 1

    monkeypatch.setattr(huggingface, "HubDataset", Dataset)
    connector = connect(project, "huggingface", options={"dataset": "team/runs"})
    assert pull(connector).created == 2
    assert pull(connector).documents == 0
    Dataset.commit = "2" * 40
    run = pull(connector)
    assert (run.documents, run.created, run.duplicates) == (2, 0, 2)


def test_the_hub_as_a_file_of_import_trajectories(project: Project, monkeypatch: pytest.MonkeyPatch) -> None:
    from apps.trajectories.hub_datasets import HubPart
    from apps.trajectories.management.commands import import_trajectories

    class Dataset:
        commit = "1" * 40

        def __init__(self, name: HubName) -> None:
            self.name = name

        def parts(self) -> Iterator[HubPart]:
            yield from (HubPart(f"default/train/{n} of 2", "default", "train", n, 2) for n in (1, 2))

        def write(self, part: HubPart, out: Any) -> int:
            out.write(chat(part.index))
            return 1

    monkeypatch.setattr(import_trajectories, "HubDataset", Dataset)
    out, told = StringIO(), StringIO()
    call_command(
        "import_trajectories",
        project.slug,
        "hf://datasets/team/runs",
        "--json",
        stdout=out,
        stderr=told,
    )
    assert json.loads(out.getvalue())["created"] == 2
    assert "hf://datasets/team/runs@111111111111 default/train/2 of 2: openai, 1 created" in told.getvalue()
