"""Two projects with equal names and equal content: what is stored of one is in no answer, file or run of the other.

`test_isolation.py` looks for marked texts. Here the answers of a project are compared as they are without the other
and next to it, so that no count, name or byte of it can make a difference; and files are compared as they are stored.
"""

import base64
import io
import json
import logging
import re
from collections.abc import Callable, Iterator
from datetime import timedelta
from hashlib import sha256
from pathlib import Path
from typing import Any

import pytest
import zstandard
from django.core.files.base import ContentFile
from django.test import Client
from django.utils import timezone

from apps.accounts.models import Project, Scope
from apps.accounts.services import create_api_key
from apps.core.errors import DomainError
from apps.core.jobs.job_queue import claim_next
from apps.core.storage.artifacts import all_names, stage
from apps.datasets import export_jobs
from apps.datasets.erasure import erase_trajectory
from apps.datasets.models import DatasetVersion, Export
from apps.datasets.selectors import find_dataset_version
from apps.training import runner, services
from apps.training.models import RewardModel, TrainingRun
from apps.training.selectors import model_named, run_folder
from apps.training.transfer import import_model
from apps.trajectories.models import Attachment, Import, Trajectory
from apps.trajectories.services import import_trajectories
from apps.trajectories.uploads import keep_upload
from tests.config.tables import CALLS, HERS, PAGES
from tests.config.test_isolation import whole
from tests.config.world import World, filled, make_world
from tests.core.test_model_folders import model_in
from tests.datasets.feedback import freeze, import_pairs, pair
from tests.trajectories.conftest import lines
from tests.trajectories.test_attachment_claims import picture
from tests.trajectories.test_views import PNG

# What is new in every answer: tokens of forms, ids of requests, times, what is free on the machine.
CHANGING = re.compile(
    r"csrfmiddlewaretoken\" value=\"\w+|X-CSRFToken[&quot;:\" ]+\w+|'(?:X-Request-ID|Content-Length|Expires)': '[^']*"
    r"|data-now=\"[^\"]*\"|idempotency_key\" value=\"[\w-]+|\bnow\b|(?:\d+|an?)\s(?:second|minute)s?\sago|[\d.]+ GiB"
)
OURS, THEIRS = "mark-of-desk", "mark-of-the-other"
DATA_URL = "data:image/png;base64,"


def fill(world: World, mark: str, count: int, scratch: Path) -> None:
    """Everything that is stored, under the same names whatever the project; the mark is in what may differ."""
    project, owner = world.project, world.people["owner"]
    url = DATA_URL + base64.b64encode(PNG).decode()
    pictures = [picture(url) | {"task": {"id": f"same-{n}", "instruction": mark}} for n in range(count)]
    import_trajectories(project=project, stream=io.BytesIO(lines(*pictures)), format="openai", by=None)
    import_pairs(project, [pair(f"task-{n}", annotator=mark) for n in range(4 + count)])
    freeze(project, name="stored")
    services.save_recipe(project=project, name="ours", toml=f"# {mark}\nepochs = {count}\n", by=None)
    folder = model_in(scratch / mark)
    (folder / "model.safetensors").write_bytes(mark.encode() * count)
    backbone = {"kind": "decoder", "note": mark}
    manifest = {"schema_version": 1, "objective": "bradley_terry", "backbone": backbone}
    (folder / "touchstone.json").write_text(json.dumps(manifest))
    import_model(project=project, folder=folder, name="base", by=None)
    export_jobs.export_feedback(project=project, format="csv", filters={}, by=owner)
    export_jobs.build_export(claimed(Export, project))
    name = keep_upload(project=project, file=ContentFile(mark.encode(), name="same.jsonl"))
    Import.objects.filter(project=project).update(file=name)
    services.start_run(
        project=project,
        dataset_version=find_dataset_version("stored", project=project),
        recipe="ours",
        by=owner,
    )


def claimed(model: Any, project: Project) -> Any:
    row = claim_next(model)
    assert row is not None and row.project_id == project.pk
    return row


@pytest.fixture
def desk(own_home: None, db: None, tmp_path_factory: pytest.TempPathFactory) -> World:
    world = make_world("desk")
    TrainingRun.objects.all().update(state="succeeded")  # so that the one to be claimed is that of `fill`
    fill(world, OURS, 2, tmp_path_factory.mktemp("desk"))
    return world


@pytest.fixture
def other(desk: World, tmp_path_factory: pytest.TempPathFactory) -> World:
    return make_other(tmp_path_factory)


def make_other(tmp_path_factory: pytest.TempPathFactory) -> World:
    queued = TrainingRun.objects.filter(state="queued")
    keys = list(queued.values_list("pk", flat=True))
    queued.update(state="succeeded")
    world = make_world("elsewhere")
    TrainingRun.objects.filter(state="queued").update(state="succeeded")
    fill(world, THEIRS, 5, tmp_path_factory.mktemp("elsewhere"))
    TrainingRun.objects.filter(pk__in=keys).update(state="queued")
    return world


def answers(world: World, key: str) -> Iterator[tuple[str, str]]:
    """Every page and call that reads, as an owner, an annotator and a key of the project get it."""
    for path, (method, least) in PAGES.items():
        if method == "GET" and path.startswith("p/") and "accounts/" not in path:
            for role in ("annotator",) if least == HERS else ("owner", "annotator"):
                client = Client(raise_request_exception=False)
                client.force_login(world.people[role])
                yield f"{role} {path}", whole(client.get(filled(path, world.names, world.project.slug)))
    client = Client(raise_request_exception=False, headers={"Authorization": f"Bearer {key}"})
    for method, path in CALLS:
        if method == "GET" and "<" in path:
            yield path, whole(client.get("/" + filled(path, world.names, world.project.slug).lstrip("/")))


@pytest.mark.slow  # every page and call, twice
def test_a_project_is_answered_the_same_beside_another(
    desk: World,
    tmp_path_factory: pytest.TempPathFactory,
    caplog: pytest.LogCaptureFixture,
) -> None:
    key = create_api_key(project=desk.project, scopes=list(Scope.values), by=None)[1]
    alone = {path: CHANGING.sub("", text) for path, text in answers(desk, key)}
    other = make_other(tmp_path_factory)
    Import.objects.filter(project=other.project).update(created_at=timezone.now() - timedelta(hours=1))
    caplog.clear()
    caplog.set_level(logging.INFO)
    next_to = {path: CHANGING.sub("", text) for path, text in answers(desk, key)}
    # The trail has what was asked the first time; that workers are behind, and a job's place in their queue, concerns
    # everyone.
    told_apart = ("/audit", "/health", "/activity/", "/imports/<int:pk>/", "/deletions/<int:pk>/")
    assert [path for path in alone if alone[path] != next_to[path] and not path.endswith(told_apart)] == []
    owner = Client()
    owner.force_login(desk.people["owner"])
    health = whole(owner.get(f"/p/{desk.project.slug}/health?checks"))
    assert "needs attention; run `doctor` for details" in health and "1 import" not in health
    everything = "".join(next_to.values()) + health + caplog.text
    assert (
        THEIRS not in everything
        and "elsewhere.example" not in everything
        and "/p/elsewhere" not in everything
    )
    assert sum(OURS in text for text in next_to.values()) > 5, "else nothing was looked at"


def stored(project: Project) -> dict[str, str]:
    """What rows of a project name in the store: the content of every file by its name."""
    folders = [
        *DatasetVersion.objects.filter(project=project).values_list("artifact", flat=True),
        *RewardModel.objects.filter(project=project).values_list("artifact", flat=True),
        *Export.objects.filter(project=project).values_list("artifact", flat=True),
        *Import.objects.filter(project=project).values_list("file", flat=True),
        f"attachments/{project.pk}",
    ]
    names = [
        name for name in all_names() if any(name == each or name.startswith(f"{each}/") for each in folders)
    ]
    return {name: sha256(stage(name).read_bytes()).hexdigest() for name in names}


def test_equal_names_and_content_are_stored_apart(desk: World, other: World) -> None:
    ours, theirs = stored(desk.project), stored(other.project)
    assert len(ours) >= 12 and not ours.keys() & theirs.keys()
    digest = sha256(PNG).hexdigest()
    assert Attachment.objects.filter(sha256=digest).count() == 2, "the same picture, once for each project"
    # Everything of ours is deleted; nothing of theirs is missing or other than it was.
    owner = desk.people["owner"]
    for trajectory in Trajectory.objects.filter(project=desk.project, task__external_id__startswith="same-"):
        erase_trajectory(trajectory=trajectory, by=owner)
    services.delete_model(model=model_named("base", project=desk.project), by=owner)
    assert not Attachment.objects.filter(project=desk.project, sha256=digest).exists()
    assert stored(other.project) == theirs
    assert DatasetVersion.objects.filter(project=other.project, withdrawn_at=None).count() == 2


def test_a_run_is_given_what_is_its_projects(desk: World, other: World) -> None:
    """The same name of dataset, recipe and model in both: the run directory has one project's bytes alone."""
    project = desk.project
    run = services.start_run(
        project=project,
        dataset_version=find_dataset_version("stored", project=project),
        recipe={"backbone": "decoder", "decoder": "base@1"},
        by=desk.people["owner"],
    )
    assert run.recipe["decoder"] == "desk/base@1"
    assert (
        TrainingRun.objects.filter(recipe_name="ours")
        .order_by("pk")
        .values_list("recipe__epochs", flat=True)[0]
        == 2
    )
    runner.prepare(run, run_folder(run))
    config = json.loads((run_folder(run) / "config.json").read_text())
    weights = Path(config["recipe"]["decoder"]) / "model.safetensors"
    content = b"".join(path.read_bytes() for path in [run_folder(run) / "config.json", weights])
    unpack = zstandard.ZstdDecompressor().decompressobj
    content += b"".join(
        unpack().decompress(path.read_bytes()) for path in (run_folder(run) / "data").glob("*.zst")
    )
    assert OURS.encode() in content and THEIRS.encode() not in content


@pytest.mark.parametrize(
    ("theirs", "nobodys"),
    [("base@1", "none@1"), ("elsewhere/base@1", "nobody/none@1"), ("elsewhere/base", "nobody/none")],
)
def test_names_of_the_other_are_answered_like_names_of_nobody(
    desk: World, other: World, theirs: str, nobodys: str
) -> None:
    project = desk.project
    RewardModel.objects.filter(project=project, name="base").delete()
    DatasetVersion.objects.filter(project=other.project, name="stored").update(name="base")
    dataset_version = find_dataset_version("stored", project=project)

    def errors(name: str) -> list[str]:
        recipe = {"backbone": "decoder", "decoder": name}
        asked: list[Callable[[], Any]] = [
            lambda: model_named(name, project=project),
            lambda: find_dataset_version(name, project=project),
            lambda: services.start_run(
                project=project, dataset_version=dataset_version, recipe=recipe, by=None
            ),
        ]
        found = []
        for ask in asked:
            with pytest.raises(DomainError) as error:
                ask()
            found.append(f"{error.value.status} {error.value.pointer} {error.value.message}")
        return found

    renamed = [error.replace("elsewhere", "nobody").replace("base", "none") for error in errors(theirs)]
    assert renamed == errors(nobodys)
