import base64
import io
import json
import threading
from pathlib import Path
from typing import Any

import pytest
import zstandard
from django.db import connection

from apps.accounts.models import AuditEvent, Project
from apps.core.errors import DomainError
from apps.trajectories import exports, services
from apps.trajectories.field_coverage import KEPT
from apps.trajectories.models import Attachment, Document, Step, Task, Trajectory
from apps.trajectories.selectors import load_trajectories
from tests.trajectories.conftest import lines, record
from workers import schema

PNG = base64.b64decode(  # one pixel
    b"iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAAAAAA6fptVAAAACklEQVR4nGNgAAAAAgABSK+kcQAAAABJRU5ErkJggg=="
)


def bring(project: Project, data: bytes, **options: Any) -> services.ImportResult:
    return services.import_trajectories(project=project, stream=io.BytesIO(data), by=None, **options)


def test_a_file_comes_in_once(project: Project) -> None:
    data = lines(*(record(number) for number in range(3)), record(1))
    none: dict[str, Any] = {"updated": 0, "rejected": [], "dropped": [], "kept": []}
    assert bring(project, data).as_json() == {"created": 4, "duplicates": 0} | none
    assert bring(project, data).as_json() == {"created": 0, "duplicates": 4} | none
    assert Trajectory.objects.count() == Document.objects.count() == 4
    assert Task.objects.count() == 3
    assert list(AuditEvent.objects.values_list("verb", flat=True)) == ["trajectories.imported"]


def test_the_same_content_in_another_project_is_another_trajectory(project: Project) -> None:
    other = Project.objects.create(slug="other", name="Other")
    assert bring(project, lines(record())).created == bring(other, lines(record())).created == 1


def test_one_bad_record_refuses_all_of_a_file(project: Project) -> None:
    data = [json.dumps(record(number)).encode() for number in range(1000)]
    data[516] = b'{"messages": nope}'
    result = bring(project, b"\n".join(data))
    assert (result.created, result.duplicates) == (0, 0)
    assert [(rejection["line"], rejection["message"]) for rejection in result.rejected] == [
        (517, "not valid JSON: Expecting value at column 14.")
    ]
    assert not Trajectory.objects.exists() and not Task.objects.exists() and not AuditEvent.objects.exists()
    kept = bring(project, b"\n".join(data), keep_good=True)
    assert (kept.created, len(kept.rejected)) == (999, 1)


def test_pointers_lead_into_the_whole_array(project: Project) -> None:
    bad = (
        record(2, reward="high"),
        record(3, metadata=[0]),
        record(4, task="t" * 2001),
    )
    result = bring(project, json.dumps([record(1), *bad]).encode())
    assert [rejection["pointer"] for rejection in result.rejected] == ["/1/reward", "/2/metadata", "/3"]


@pytest.mark.parametrize("data", [b"", b"[]"])
def test_an_empty_file_is_an_error(project: Project, data: bytes) -> None:
    with pytest.raises(DomainError, match="The file has no records"):
        bring(project, data)


def test_a_wrong_format_is_an_error_of_every_record(project: Project) -> None:
    result = bring(project, lines(record()), format="tau-bench")
    assert [rejection["pointer"] for rejection in result.rejected] == ["/traj"]


def test_a_task_id_is_made_of_what_stands_before_the_agent(project: Project) -> None:
    def messages(answer: str) -> list[dict[str, str]]:
        return [{"role": "user", "content": "Same question"}, {"role": "assistant", "content": answer}]

    bring(
        project,
        lines({"messages": messages("a")}, {"messages": messages("b")}),
    )
    task = Task.objects.get()
    assert task.external_id.startswith("content-")
    assert task.instruction == "Same question"
    assert task.trajectories.count() == 2


def test_nul_and_lone_surrogates_are_replaced_marked_and_kept_in_the_original(project: Project) -> None:
    raw = b'{"task": "t\\u0000", "messages": [{"role": "user", "content": "a\\u0000b\\ud800"},' + (
        b'{"role": "assistant", "content": "ok"}], "metadata": {"n": 1.10}, "n\\u0000": 1}'
    )
    assert bring(project, raw).created == 1
    step = Step.objects.get(index=0)
    assert step.message == [{"text": "a\ufffdb\ufffd"}]
    assert step.extra["replaced_characters"] == 2
    assert zstandard.decompress(bytes(Document.objects.get().data)) == raw


def test_blank_instructions_are_filled_by_a_later_import(project: Project) -> None:
    bare = {"task": "t", "messages": [{"role": "assistant", "content": "a"}]}
    bring(project, lines(bare))
    bring(
        project,
        lines(bare | {"task": {"id": "t", "instruction": "Do it", "reference": "r"}, "reward": 1}, record(1)),
    )
    task = Task.objects.get(external_id="t")
    assert (task.instruction, task.reference) == ("", None)  # a duplicate changes nothing
    again = {
        "task": {"id": "t", "instruction": "Do it", "reference": "r"},
        "messages": [{"role": "assistant", "content": "b"}],
    }
    bring(project, lines(again))
    task.refresh_from_db()
    assert (task.instruction, task.reference) == ("Do it", "r")


def test_the_order_of_arguments_and_the_writing_of_numbers_survive(project: Project) -> None:
    call = {
        "id": "c",
        "type": "function",
        "function": {"name": "f", "arguments": '{"z": 1, "a": {"y": 1.0, "b": 2}}'},
    }
    messages = [
        {"role": "user", "content": "q"},
        {"role": "assistant", "content": None, "tool_calls": [call]},
    ]
    trajectory = schema.Trajectory(steps=schema.from_messages(messages), task=schema.Task(id="t"))
    (key,) = services.store_trajectories(project=project, trajectories=[trajectory], source_format="feedback")
    back = load_trajectories([key])[key]
    assert schema.to_messages(back) == messages
    assert back.content_hash == trajectory.content_hash == Trajectory.objects.get().content_hash
    assert services.store_trajectories(project=project, trajectories=[trajectory], source_format="x") == [key]


def test_data_urls_become_attachments_and_come_back(project: Project) -> None:
    def url(media_type: str, data: bytes) -> str:
        return f"data:{media_type};base64,{base64.b64encode(data).decode()}"

    parts = [
        {"type": "image_url", "image_url": {"url": url("image/png", PNG), "detail": "low"}},
        {"type": "image_url", "image_url": {"url": url("text/html", b"<script>alert(1)</script>")}},
        {"type": "image_url", "image_url": {"url": "https://elsewhere.example/a.png"}},
    ]
    messages = [{"role": "user", "content": parts}, {"role": "assistant", "content": "Seen."}]
    assert bring(project, lines({"task": "t", "messages": messages})).created == 1
    assert bring(project, lines({"task": "t", "messages": messages})).duplicates == 1
    kinds = set(Attachment.objects.values_list("media_type", flat=True))
    assert kinds == {"image/png", "text/html"}
    key = Trajectory.objects.get().pk
    assert load_trajectories([key])[key].content_hash == Trajectory.objects.get().content_hash
    exported = exports.export_document(project, key, format="openai")["messages"]
    assert exported[0]["content"][0] == parts[0]
    assert exported[0]["content"][2] == parts[2]


def test_tau_bench_round_trip(project: Project, shared_data: Path) -> None:
    data = (shared_data / "tau_bench" / "gpt-4o-airline-tasks-0-34.json").read_bytes()
    kept = [{"path": path, "reason": KEPT, "count": 140} for path in ("/info", "/trial")]
    rest = {"updated": 0, "rejected": [], "dropped": [], "kept": kept}
    assert bring(project, data).as_json() == {"created": 140, "duplicates": 0} | rest
    assert bring(project, data).as_json() == {"created": 0, "duplicates": 140} | rest
    assert Trajectory.objects.filter(success=True).count() == 43
    given = json.loads(data)
    rows = Trajectory.objects.all()
    exported = [json.loads(line) for line in exports.export_lines(project, rows, format="openai")]
    assert [trajectory["messages"] for trajectory in exported] == [trajectory["traj"] for trajectory in given]
    originals = [json.loads(line) for line in exports.export_lines(project, rows, format="original")]
    assert originals == given
    hashes = dict(rows.values_list("pk", "content_hash"))
    loaded = load_trajectories(hashes)
    assert {key: trajectory.content_hash for key, trajectory in loaded.items()} == hashes
    asked = [
        schema.Trajectory(
            steps=schema.from_messages(trajectory["traj"]), task=schema.Task(id=str(trajectory["task_id"]))
        )
        for trajectory in given
    ]
    texts = [json.dumps(schema.to_messages(step)) for step in asked]
    assert [json.dumps(schema.to_messages(loaded[key])) for key in sorted(loaded)] == texts
    again = Project.objects.create(slug="again", name="Again")
    for format in ("openai", "atif"):
        lines_out = b"".join(exports.export_lines(project, rows.filter(project=project), format=format))
        result = bring(again, lines_out)
        assert result.created + result.duplicates == 140 and not result.rejected
    assert set(again.trajectories.values_list("content_hash", flat=True)) == set(hashes.values())


@pytest.mark.django_db(transaction=True)
def test_two_imports_of_one_file_at_once_make_it_once() -> None:
    project = Project.objects.create(slug="desk", name="Desk")
    files = [lines(*(record(number) for number in order)) for order in (range(700), reversed(range(700)))]
    results: list[services.ImportResult] = []

    def run(data: bytes) -> None:
        try:
            results.append(bring(project, data))
        finally:
            connection.close()

    threads = [threading.Thread(target=run, args=(data,)) for data in files]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sum(result.created for result in results) == Trajectory.objects.count() == 700
    assert sum(result.duplicates for result in results) == 700


def test_the_queries_of_a_chunk_do_not_grow_with_its_records(
    project: Project, django_assert_max_num_queries: Any
) -> None:
    bring(project, lines(*(record(number) for number in range(50))))
    with django_assert_max_num_queries(19):
        bring(project, lines(*(record(number) for number in range(100, 500))))
