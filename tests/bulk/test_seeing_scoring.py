"""Bulk scoring of stored trajectories with pictures, by a model that sees and by a judge that does."""

import json
from pathlib import Path
from typing import Any

import pytest
import torch

from apps.accounts.models import Project
from apps.bulk.estimates import estimate_bulk_job
from apps.bulk.exports import result_rows
from apps.bulk.models import BulkJob
from apps.bulk.running import work_on_chunks
from apps.bulk.services import create_bulk_job
from apps.core.storage import artifacts
from apps.training.models import RewardModel
from tests.bulk.stored import score_job
from tests.judges.test_pictures import judge_at, store
from tests.picture_files import BLUE, RED
from tests.workers.llm.scripted import Script, scripted
from tests.workers.llm.seeing import PICTURE_TOKENS, pictures_of, scored_by_colour
from workers.models import Lineage, build, load, save
from workers.schema.recipe import Recipe

pytestmark = [pytest.mark.ml, pytest.mark.django_db(transaction=True)]


def registered(project: Project, folder: Path, image_encoder: str) -> RewardModel:
    """With random weights."""
    torch.manual_seed(7)
    recipe = Recipe(width=16, attention_heads=2, ensemble=1, max_tokens=400, image_encoder=image_encoder)
    folder.mkdir()
    save(
        build(recipe),
        folder,
        recipe=recipe,
        reward={"median": 0.0, "std": 1.0},
        criteria={},
        lineage=Lineage(),
    )
    manifest = json.loads((folder / "touchstone.json").read_text())
    name = image_encoder or "blind"
    artifact = artifacts.store_tree(folder, f"models/desk/{name}-1")
    return RewardModel.objects.create(
        project=project, name=name, version=1, artifact=artifact, manifest=manifest
    )


def rewards(job: BulkJob) -> list[float]:
    work_on_chunks()
    job.refresh_from_db()
    assert job.state == "succeeded", job.error
    rows = sorted(result_rows(job), key=lambda row: int(row["trajectory"]))
    assert not any(row.get("problem") for row in rows)
    return [row["reward"] for row in rows]


def test_a_model_that_sees_gets_the_pictures(project: Project, own_home: None, tmp_path: Path) -> None:
    for colour in (RED, BLUE):
        store(project, colour)
    model = registered(project, tmp_path / "model", "embedded")
    assert model.sees_pictures
    red, blue = rewards(score_job(project, model))
    assert abs(red - blue) > 1e-4
    loaded = load(artifacts.stage(model.artifact))
    (served,) = loaded.score([loaded.render(_with_picture(RED))])
    assert red == pytest.approx(served.raw, abs=1e-5), "what the same picture gets when it is sent"


def test_to_a_model_that_does_not_see_they_are_alike(
    project: Project, own_home: None, tmp_path: Path
) -> None:
    for colour in (RED, BLUE):
        store(project, colour)
    red, blue = rewards(score_job(project, registered(project, tmp_path / "model", "")))
    assert red == pytest.approx(blue, abs=1e-6)


def test_a_judge_that_sees_gets_the_pictures_and_they_are_estimated(
    project: Project, own_home: None, settings: Any
) -> None:
    settings.OUTGOING_ALLOW = ["127.0.0.0/8"]
    store(project, RED, 2), store(project, BLUE, 6)
    script = Script(scored_by_colour)
    with scripted(script) as url:
        judge = judge_at(project, url, reads_pictures=True, max_pictures=4, prompt_price=1_000_000)
        estimate = estimate_bulk_job(project=project, work="judge", judge=judge)
        assert estimate.cost is not None
        type(judge.llm_connection).objects.update(reads_pictures=False)
        judge.refresh_from_db()
        blind = estimate_bulk_job(project=project, work="judge", judge=judge)
        assert estimate.cost - blind.cost == (2 + 4) * 1600
        type(judge.llm_connection).objects.update(reads_pictures=True)
        job = create_bulk_job(project=project, work="judge", judge=judge)
        assert rewards(job) == [0.5, 1.0]
    assert sorted(len(pictures_of(body)) for body in script.asked) == [2, 4]
    chunk = job.chunks.get()
    assert chunk.tokens >= 6 * PICTURE_TOKENS


def _with_picture(colour: tuple[int, int, int]) -> Any:
    from tests.picture_files import coloured, data_url, file_of
    from workers import schema

    parts = (
        schema.Part(text="Look 0."),
        schema.Part(type="image", source=data_url(file_of(coloured(colour)))),
    )
    steps = (
        schema.Step(source="user", message=parts),
        schema.Step(source="agent", message=(schema.Part(text="Done."),)),
    )
    return schema.Trajectory(steps=steps, task=schema.Task(id="page", instruction="Make it."))
