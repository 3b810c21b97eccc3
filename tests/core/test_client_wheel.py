"""The wheel that a server gives out is what pip installs, and holds what the server itself runs with."""

import subprocess
import sys
import zipfile
from io import BytesIO
from pathlib import Path

import pytest
from packaging.requirements import Requirement
from packaging.utils import parse_wheel_filename
from starlette.testclient import TestClient

from apps.core.client_wheel import ClientWheel, client_wheel

ROOT = Path(__file__).parents[2]
OFFLINE = ["--no-index", "--no-deps", "--disable-pip-version-check", "--no-cache-dir"]


@pytest.fixture(scope="module")
def wheel() -> ClientWheel:
    return client_wheel()


def _install(*arguments: str, into: Path) -> subprocess.CompletedProcess[str]:
    command = [
        sys.executable,
        "-m",
        "pip",
        "--isolated",
        "install",
        *OFFLINE,
        "--target",
        str(into),
        *arguments,
    ]
    return subprocess.run(command, capture_output=True, text=True, check=False)


def test_its_name_is_ours_and_pure() -> None:
    name, version, _, tags = parse_wheel_filename(client_wheel().file_name)
    assert (
        name == "touchstone-rewards-client"
        and str(version)
        and [str(tag) for tag in tags] == ["py3-none-any"]
    )


def test_the_docs_name_the_wheel_there_is(wheel: ClientWheel) -> None:
    assert f"/client/{wheel.file_name}\n" in (ROOT / "docs/trainers.md").read_text()


def test_code_that_is_newer_than_what_is_installed_says_so() -> None:
    """As after a pull that renamed a distribution, before `make install`."""
    hide = "import importlib.metadata as m, sys, runpy\n"
    hide += "def gone(name): raise m.PackageNotFoundError(name)\nm.version = gone\n"
    hide += "sys.argv = ['manage.py', 'help']; runpy.run_path('manage.py', run_name='__main__')"
    done = subprocess.run([sys.executable, "-c", hide], cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 1 and "Run `make install`" in done.stderr and "Traceback" not in done.stderr


def test_pip_installs_it_and_it_works(wheel: ClientWheel, tmp_path: Path) -> None:
    (tmp_path / wheel.file_name).write_bytes(wheel.content)
    installed = tmp_path / "installed"
    done = _install(str(tmp_path / wheel.file_name), into=installed)
    assert done.returncode == 0, done.stderr
    source = ROOT / "client" / "touchstone_client"
    files = {path.relative_to(source) for path in source.rglob("*.py")} | {Path("py.typed")}
    assert {path.relative_to(installed / "touchstone_client") for path in installed.rglob("*.py")} | {
        Path("py.typed")
    } == files
    asked = f"import sys; sys.path.insert(0, {str(installed)!r}); import touchstone_client as c; print(c.__file__)"
    command = [sys.executable, "-I", "-c", asked]
    said = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    assert said.startswith(str(installed))


def test_equal_files_make_equal_bytes(wheel: ClientWheel) -> None:
    client_wheel.cache_clear()
    assert client_wheel().content == wheel.content


def test_it_holds_the_package_its_metadata_and_nothing_else(wheel: ClientWheel) -> None:
    with zipfile.ZipFile(BytesIO(wheel.content)) as archive:
        names = archive.namelist()
        metadata = archive.read(next(name for name in names if name.endswith("METADATA"))).decode()
    assert all(
        name.split("/")[0].split("-")[0] in ("touchstone_client", "touchstone_rewards_client")
        for name in names
    )
    assert not [name for name in names if "__pycache__" in name]
    # Everything it asks an index for, with nothing of ours among it.
    needed = [line for line in metadata.splitlines() if line.startswith("Requires-Dist:")]
    asked = [Requirement(line.partition(": ")[2]) for line in needed]
    assert [each.name for each in asked if each.marker is None] == ["httpx"]


@pytest.fixture(scope="module")
def web() -> TestClient:
    from apps.config.asgi import application

    return TestClient(application, base_url="http://127.0.0.1", raise_server_exceptions=True)


def test_the_web_process_gives_it_to_anybody(web: TestClient, wheel: ClientWheel) -> None:
    answer = web.get(f"/client/{wheel.file_name}")
    assert answer.status_code == 200 and answer.content == wheel.content


def test_the_page_of_links_has_the_hash_pip_checks(
    web: TestClient, wheel: ClientWheel, tmp_path: Path
) -> None:
    page = web.get("/client/").text
    assert f"{wheel.file_name}#sha256={wheel.sha256}" in page
    (tmp_path / "index.html").write_text(page)
    (tmp_path / wheel.file_name).write_bytes(wheel.content)
    found = ["--find-links", str(tmp_path / "index.html"), "touchstone-rewards-client"]
    assert _install(*found, into=tmp_path / "good").returncode == 0
    (tmp_path / wheel.file_name).write_bytes(wheel.content.replace(b"httpx", b"httpy"))
    refused = _install(*found, into=tmp_path / "bad")
    assert refused.returncode != 0 and "DO NOT MATCH THE HASHES" in refused.stderr


@pytest.mark.parametrize("name", ["other.whl", "..%2f..%2fconstraints.txt", "%2e%2e/pyproject.toml"])
def test_nothing_else_is_there(web: TestClient, name: str) -> None:
    assert web.get(f"/client/{name}").status_code == 404
