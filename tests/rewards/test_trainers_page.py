"""Every line of docs/trainers.md that can run here does, against a running service."""

import re
import subprocess
from pathlib import Path
from typing import Any

import pytest

from apps.rewards.services import deploy
from tests.rewards.conftest import Service, make_model, serves, wait_until
from tests.workers.decoders import save_decoder
from tests.workers.engine.fakes import FakeModel, FakeRendered
from workers.schema import Features

pytestmark = pytest.mark.ml

PAGE = (Path(__file__).parents[2] / "docs" / "trainers.md").read_text()
BLOCKS = re.findall(r"^## ([^\n]+)|^```(\w*)\n(.*?)^```", PAGE, re.MULTILINE | re.DOTALL)


def blocks(language: str) -> list[Any]:
    """Those of a language, each named by the part it stands in."""
    found, part = [], "First"
    for heading, kind, text in BLOCKS:
        part = heading or part
        runs = text.lstrip().startswith("curl ") if not kind and language == "sh" else kind == language
        if text and runs:
            name = re.sub(r"\W+", "-", part.lower()).strip("-")
            found.append(pytest.param(text, id=f"{name}-{len(found)}"))
    return found


class Rows(FakeModel):
    """Reads numbers."""

    def render(self, content: Any, *, session: Any = None) -> FakeRendered:
        rows = content.rows if isinstance(content, Features) else [(0,)]  # what it is warmed up with
        return FakeRendered(tuple(tuple(round(1000 * number) for number in row) for row in rows))


@pytest.fixture
def there(service: Service, project: Any, key: str, tmp_path, monkeypatch) -> Service:
    """An installation with the endpoints the page speaks of, and an empty folder to work in."""
    for endpoint, reads in (("sample", FakeModel()), ("cartpole", Rows())):
        model = make_model(project, service, reads, name=endpoint)
        deploy(model=model, endpoint_name=endpoint, project=project, by=None)
    wait_until(lambda: all(serves(service, endpoint, 1) for endpoint in ("sample", "cartpole")))
    monkeypatch.setenv("URL", service.url)
    monkeypatch.setenv("KEY", key)
    monkeypatch.chdir(tmp_path)
    return service


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")  # of trainers, about each other
@pytest.mark.parametrize("code", blocks("python"))
def test_python(there, code: str, tmp_path, monkeypatch) -> None:
    if 'environ["MODEL"]' in code:
        monkeypatch.setenv("MODEL", str(save_decoder(tmp_path / "policy")))
    exec(compile(code, "docs/trainers.md", "exec"), {"__name__": "__main__"})


@pytest.mark.parametrize("code", blocks("sh"))
def test_commands(there, code: str) -> None:
    done = subprocess.run(["bash", "-ec", code], capture_output=True, text=True, check=True, timeout=300)
    assert '"reward"' in done.stdout, done.stdout


def test_the_page_has_them() -> None:
    assert len(blocks("python")) >= 6 and len(blocks("sh")) >= 2
