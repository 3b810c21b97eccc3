"""A public reward model is brought in: the form, the import while it waits, and where the model comes from."""

from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Page, expect

from apps.accounts.models import Project
from apps.core.jobs.job_queue import claim_next
from apps.training import public_models
from apps.training.models import ModelImport
from tests.browser.conftest import login, shoot
from tests.factories import make_member

pytestmark = [pytest.mark.browser, pytest.mark.django_db(transaction=True)]


def test_a_public_model_is_imported(
    page: Page,
    live_server: Any,
    project: Project,
    settings: Any,
    tmp_path_factory: pytest.TempPathFactory,
    monkeypatch: pytest.MonkeyPatch,
    own_home: None,
) -> None:
    monkeypatch.setattr(public_models, "CHILD", "tests.training.fake_importer")
    folder: Path = tmp_path_factory.mktemp("models")
    for name in ("config.json", "tokenizer.json", "model.safetensors"):
        (folder / name).write_text("{}")
    settings.MODEL_DIRS = {"skywork": str(folder)}
    login(page, live_server, make_member(project, "r@example.org", "researcher"))
    page.goto(f"{live_server.url}/p/desk/training/models/")
    page.get_by_role("link", name="Import a model").click()
    page.get_by_text("Options", exact=True).click()
    shoot(page, "model-import-form")
    page.get_by_label("Source").fill("skywork")
    page.get_by_label("Model name").fill("sky")
    page.get_by_role("button", name="Import model").click()
    expect(page.get_by_text("Next in the queue")).to_be_visible()
    job = claim_next(ModelImport)
    assert job is not None
    public_models.execute(job)
    expect(page.get_by_text("apache-2.0")).to_be_visible()  # the page asks again without being loaded
    shoot(page, "model-import-done")
    page.get_by_role("link", name="sky@1").click()
    expect(page.get_by_role("heading", name="Origin")).to_be_visible()
    shoot(page, "model-imported")
