"""The documentation site as the web process serves it."""

import base64
import hashlib
from pathlib import Path

import pytest
from starlette.applications import Starlette
from starlette.routing import Mount
from starlette.testclient import TestClient

from apps.core.http.documentation import Documentation


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "index.html").write_text("<!doctype html><script>theme()</script><p>Guides")
    (tmp_path / "rewards").mkdir()
    (tmp_path / "rewards/index.html").write_text("<p>Rewards")
    return tmp_path


def _client(folder: Path) -> TestClient:
    return TestClient(Starlette(routes=[Mount("/docs", Documentation(folder))]))


def test_pages_are_served_with_a_policy_for_their_own_scripts(folder: Path) -> None:
    client = _client(folder)
    answer = client.get("/docs/")
    assert (answer.status_code, "Guides" in answer.text) == (200, True)
    digest = base64.b64encode(hashlib.sha256(b"theme()").digest()).decode()
    policy = answer.headers["content-security-policy"]
    assert f"'sha256-{digest}'" in policy
    assert "unsafe-inline" not in policy.split("style-src")[0]
    assert client.get("/docs/rewards/").text == "<p>Rewards"


@pytest.mark.parametrize("path", ["nothing.html", "../settings.py", "%2e%2e/settings.py"])
def test_what_is_not_in_the_folder_is_not_found(folder: Path, path: str) -> None:
    (folder.parent / "settings.py").write_text("SECRET")
    answer = _client(folder).get(f"/docs/{path}")
    assert (answer.status_code, "SECRET" in answer.text) == (404, False)


def test_without_a_site_the_answer_says_how_to_build_one(tmp_path: Path) -> None:
    answer = _client(tmp_path / "none").get("/docs/")
    assert answer.status_code == 404
    assert "make docs" in answer.text
