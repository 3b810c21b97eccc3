from collections.abc import Iterator

import pytest

from apps.accounts.models import Project
from apps.datasets.models import DatasetVersion
from apps.training import runner
from tests.datasets.feedback import freeze, import_pairs, pair
from tests.training.model_hub import ModelHub, running_model_hub


@pytest.fixture(autouse=True)
def home(own_home: None) -> None:
    """Run directories and models are named after rows, whose numbers come again."""


@pytest.fixture
def dataset_version(project: Project) -> DatasetVersion:
    import_pairs(project, [pair(f"task-{n}") for n in range(12)])
    return freeze(project)


@pytest.fixture
def fake_child(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(runner, "CHILD", "tests.training.fake_child")
    monkeypatch.setattr(runner, "TICK", 0.02)
    monkeypatch.setattr(runner, "heartbeat_seconds", lambda: 0.05)


@pytest.fixture
def hub(monkeypatch: pytest.MonkeyPatch) -> Iterator[ModelHub]:
    from huggingface_hub import constants

    monkeypatch.setenv("NO_PROXY", "127.0.0.1")
    with running_model_hub() as server:
        monkeypatch.setattr(constants, "ENDPOINT", server.url)
        template = server.url + "/{repo_id}/resolve/{revision}/{filename}"
        monkeypatch.setattr(constants, "HUGGINGFACE_CO_URL_TEMPLATE", template)
        monkeypatch.setattr(constants, "HF_HUB_OFFLINE", False)
        monkeypatch.setattr(constants, "HF_HUB_DISABLE_XET", True)
        server.files = {
            "config.json": b"{}",
            "model.safetensors": b"weights",
            "README.md": b"---\nlicense: mit\n---\n",
            "modeling_rm.py": b"import os",
            "pytorch_model.bin": b"pickle",
            "onnx/model.safetensors": b"other",
        }
        yield server
