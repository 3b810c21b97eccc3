"""What a researcher sees from a frozen dataset to a model: real trainings, their reports, and one next to another."""

import io
import json
import random
from pathlib import Path
from typing import Any

import pytest
from django.core.management import call_command
from django.urls import reverse
from playwright.sync_api import Page, expect

from apps.accounts.models import Project, User
from apps.annotation.feedback.services import import_feedback
from apps.core.jobs.job_queue import JobState, claim_next
from apps.core.storage import artifacts
from apps.training import runner, services
from apps.training.models import RewardModel, TrainingRun, TrainingRunEvent
from apps.training.tasks import advance_model_exports
from tests.datasets.feedback import freeze, import_pairs, pair

pytestmark = [
    pytest.mark.browser,
    pytest.mark.django_db(transaction=True),
    pytest.mark.usefixtures("own_home"),
]

_RECIPE = "epochs = 3\nwidth = 32\nensemble = 2\n"


@pytest.fixture
def researcher(project: Project) -> User:
    return User.objects.get(email="rose@example.org")


def url(live_server: Any, name: str, *args: object) -> str:
    return live_server.url + reverse(f"training:{name}", args=["desk", *args])


def worker() -> TrainingRun:
    """What a GPU worker does: takes the next run, and trains in a process of its own."""
    run = claim_next(TrainingRun)
    assert run is not None
    runner.execute(run)
    run.refresh_from_db()
    assert run.state == JobState.SUCCEEDED, run.error
    return run


def test_nothing_is_there_yet(
    page: Page, live_server: Any, tools: Any, project: Project, researcher: User
) -> None:
    tools.login(page, live_server, researcher)
    for name in ("run-list", "run-create", "model-list"):
        page.goto(url(live_server, name))
        tools.shoot(page, f"{name}-empty")


@pytest.mark.slow  # three trainings; the next test has one
def test_from_a_dataset_to_a_second_model(
    page: Page, live_server: Any, tools: Any, project: Project, researcher: User
) -> None:
    dice = random.Random(0)
    pairs = [
        pair(f"order {number}", choice="a" if dice.random() < 0.8 else "b", annotator=annotator)
        for number in range(60)
        for annotator in ("ann", "ben", "cleo")
    ]
    import_pairs(project, pairs)
    dataset_version = freeze(project, shares=(0.5, 0.2, 0.3))
    tools.login(page, live_server, researcher)
    page.goto(live_server.url + reverse("datasets:dataset-version-list", args=["desk"]))
    page.get_by_role("link", name="first@1").first.click()
    tools.shoot(page, "dataset-near-copies")

    page.goto(url(live_server, "run-list"))
    page.get_by_role("link", name="Train a model").click()
    expect(page.get_by_text("No time estimate")).to_be_visible()
    page.select_option("#id_recipe", "own")
    page.get_by_text("Advanced options").click()
    page.get_by_role("tab", name="TOML").click()
    page.fill("#id_toml", "epochs = 0")
    page.keyboard.press("End")
    expect(page.locator("#foreseen").get_by_text("Expected `int` >= 1")).to_be_visible()
    page.get_by_role("tab", name="TOML").click()
    page.fill("#id_toml", _RECIPE)
    page.keyboard.press("End")
    expect(page.locator("#foreseen").get_by_text("for up to 3 epochs")).to_be_visible()
    page.get_by_text("Recipe keys").click()
    expect(page.locator("#foreseen").get_by_text("width = 32")).to_be_visible()
    page.get_by_role("tab", name="TOML").click()
    page.fill("#id_toml", _RECIPE.replace("width = 32", "width = 16"))
    page.keyboard.press("End")
    expect(page.locator("#foreseen").get_by_text("width = 16")).to_be_visible()  # still open
    page.get_by_role("tab", name="TOML").click()
    page.fill("#id_toml", _RECIPE)
    page.keyboard.press("End")
    expect(page.locator("#foreseen").get_by_text("width = 32")).to_be_visible()
    tools.shoot(page, "run-form")
    page.get_by_role("button", name="Start training").click()
    expect(page.get_by_text("Next in the queue")).to_be_visible()
    tools.shoot(page, "run-waiting")
    waiting = TrainingRun.objects.get()
    TrainingRunEvent.objects.create(training_run=waiting, attempt=1, seq=1, data={"step": 1, "loss": 0.7})
    TrainingRunEvent.objects.create(training_run=waiting, attempt=1, seq=2, data={"step": 2, "loss": 0.5})
    expect(page.locator("#loss")).to_contain_text("0.57")  # on the axis: it moves without a reload
    waiting.events.all().delete()

    first = worker()
    page.reload()
    expect(page.locator("#loss svg")).to_be_visible()
    tools.shoot(page, "run-finished")
    page.get_by_role("link", name="Duplicate run").click()
    expect(page.locator("#foreseen").get_by_text(f"run {first.number}")).to_be_visible()
    page.get_by_role("button", name="Start training").click()
    second_seed = worker()

    page.goto(url(live_server, "run-list") + "?by=seed")
    expect(page.get_by_text("2 seeds")).to_be_visible()
    model = RewardModel.objects.get(training_run=first)
    page.goto(url(live_server, "model-detail", model.pk))
    page.get_by_role("link", name="Fine-tune this model").click()
    page.select_option("#id_recipe", "own")
    page.get_by_role("tab", name="TOML").click()
    page.fill("#id_toml", _RECIPE + "learning_rate = 3e-4\n")
    page.get_by_role("button", name="Start training").click()
    third = worker()
    page.goto(url(live_server, "run-list"))
    tools.shoot(page, "runs")
    page.get_by_label("Select all on this page").check()
    page.get_by_role("button", name="Compare selected").click()
    expect(page.get_by_role("cell", name="0.0003")).to_be_visible()
    tools.shoot(page, "runs-compared")

    grown = RewardModel.objects.get(training_run=third)
    assert grown.parent == model
    other = RewardModel.objects.get(training_run=second_seed)
    call_command("compare", str(grown), str(other), "--dataset", str(dataset_version))
    page.goto(url(live_server, "model-detail", grown.pk))
    expect(page.get_by_text("this model, fine-tuned from")).to_be_visible()
    tools.shoot(page, "model")
    page.get_by_role("link", name=f"against {other}").click()
    expect(page.get_by_role("heading", name=f"Comparison with {other}")).to_be_visible()
    tools.shoot(page, "evaluation-compared")
    page.goto(url(live_server, "model-list"))
    tools.shoot(page, "models")


def test_a_report_of_all_that_was_said(
    page: Page, live_server: Any, tools: Any, project: Project, researcher: User
) -> None:
    """Comparisons, outcomes, step labels, ratings and rubric scores, some of them wrong: one model, one report."""
    dice = random.Random(1)
    lines: dict[str, list[dict[str, Any]]] = {kind: [] for kind in ("outcomes", "steps", "ratings", "rubric")}
    for number in range(60):
        compared = pair(f"order {number}")
        for side, is_good in (("a", True), ("b", False)):
            slip = dice.random() < 0.2
            of = {"task": compared["task"], "trajectory": compared[side]}
            lines["outcomes"].append(of | {"success": is_good != slip})
            lines["steps"].append(of | {"first_error": None if is_good != slip else 0, "annotator": "ann"})
            lines["ratings"].append(of | {"accept": is_good != slip, "annotator": "ben"})
            scored = {"criterion": "polite", "value": dice.randrange(3) + 2 * is_good, "scale": [0, 4]}
            lines["rubric"].append(of | scored | {"annotator": "cleo"})
    import_pairs(project, [pair(f"order {number}") for number in range(60)])
    import_pairs(project, [pair(f"order {n}", choice=dice.choice("ab"), annotator="ben") for n in range(60)])
    for kind, some in lines.items():
        stream = io.BytesIO("".join(json.dumps(record) + "\n" for record in some).encode())
        assert not import_feedback(project=project, stream=stream, format=kind, by=None).rejected
    dataset_version = freeze(project, shares=(0.5, 0.2, 0.3))
    recipe = {"objective": "joint", "annotators": "learnt", "epochs": 4, "width": 32, "ensemble": 2}
    run = services.start_run(project=project, dataset_version=dataset_version, recipe=recipe, by=None)
    assert worker() == run
    tools.login(page, live_server, researcher)
    page.goto(url(live_server, "run-detail", run.pk))
    for title in ("Held-out comparisons", "Outcomes", "First errors", "Step labels", "Ratings and scores"):
        expect(page.get_by_role("heading", name=title, exact=True)).to_be_visible()
    expect(page.get_by_role("heading", name="Annotator weights")).to_be_visible()
    for summary in page.locator(".card details summary", has_text="Worst errors").all():
        summary.click()
    expect(page.get_by_text("succeeded, reward").first).to_be_visible()
    tools.shoot(page, "run-joint")
    page.locator("li", has_text="succeeded, reward").first.get_by_role("link").click()
    expect(page.get_by_role("heading", name="Unnamed agent: order", level=1)).to_be_visible()


def test_a_model_is_exported_from_its_page(
    page: Page, live_server: Any, tools: Any, project: Project, researcher: User, tmp_path: Path
) -> None:
    manifest = {
        "schema_version": 1,
        "objective": "bradley_terry",
        "backbone": {"kind": "decoder", "architecture": "qwen3"},
        "aggregation": "value",
        "adapter": {"rank": 8},
    }
    (tmp_path / "made").mkdir()
    (tmp_path / "made" / "model.safetensors").write_bytes(b"weights")
    artifact = artifacts.store_tree(tmp_path / "made", "models/polite-1")
    model = services.adopt_model(
        project=project, name="polite", artifact=artifact, manifest=manifest, by=None
    )
    tools.login(page, live_server, researcher)
    page.goto(url(live_server, "model-detail", model.pk))
    expect(page.get_by_role("radio", name="GGUF")).to_be_visible()
    tools.shoot(page, "model-export")
    page.get_by_role("radio", name="Artifact").check()
    page.get_by_role("button", name="Create export").click()
    expect(page.get_by_text("Next in the queue")).to_be_visible()
    page.get_by_role("radio", name="Token classifier").check()
    advance_model_exports()
    expect(page.get_by_role("link", name="Download")).to_be_visible()
    assert page.get_by_role("radio", name="Token classifier").is_checked(), "polling keeps what is chosen"
    tools.shoot(page, "model-exported")
    with page.expect_download() as download:
        page.get_by_role("link", name="Download").click()
    assert download.value.suggested_filename == "desk-polite-1-artifact.tar"
