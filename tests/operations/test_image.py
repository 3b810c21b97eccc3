"""The container image: what would be in it, and that it is enough to run. No Docker is needed."""

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.operations.docker_context import Ignore, context, copied, copies

ROOT = Path(__file__).parents[2]
OPERATIONS = ROOT / "docs" / "operations"
DOCKERFILE = (OPERATIONS / "Dockerfile").read_text()
# What lies about in the folder of someone who runs or works on this, and must reach no image.
SECRETS = [
    ".env",
    ".git/config",
    ".venv/lib/python3.12/site-packages/x.py",
    ".ssh/id_ed25519",
    "apps/.env",
    "apps/config/local.env",
    "apps/config/.secret_key",
    "apps/config/secret_key",
    "apps/config/tls.key",
    "apps/config/tls.pem",
    "apps/core/__pycache__/x.cpython-312.pyc",
    "apps/rewards/tests/test_x.py",
    "backup.backup",
    "client/.pypirc",
    "client/build/lib/x.py",
    "client/touchstone_rewards_client.egg-info/PKG-INFO",
    "docs/operations/.env",
    "docs/operations/secrets/secret_key",
    "dump.sql",
    "static/.DS_Store",
    "static/id_rsa",
    "templates/aws_credentials.json",
    "tests/x.py",
    "touchstone.backup",
    "var/secret_key",
    "var/artifacts/x.safetensors",
    "workers/models/weights.safetensors",
    "workers/secrets/token",
]


@pytest.fixture(scope="module")
def tree(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The tracked files, as links, and what should not be copied."""
    folder = tmp_path_factory.mktemp("context")
    listed = subprocess.run(
        ["git", "ls-files", "-co", "--exclude-standard"], cwd=ROOT, capture_output=True, text=True
    )
    for name in listed.stdout.splitlines():
        if (ROOT / name).is_file():
            (folder / name).parent.mkdir(parents=True, exist_ok=True)
            (folder / name).symlink_to(ROOT / name)
    for name in SECRETS:
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text("s3cret")
    return folder


@pytest.fixture(scope="module")
def image(tree: Path) -> dict[str, str]:
    return copied(context(tree), [each for each in copies(DOCKERFILE) if each.stage == "final"])


def test_no_secret_reaches_the_build(tree: Path) -> None:
    assert sorted(set(context(tree)) & set(SECRETS)) == []


def test_only_what_runs_is_in_the_image(image: dict[str, str]) -> None:
    assert {name.split("/")[0] for name in image} == {
        "manage.py",
        "LICENSE",
        "apps",
        "workers",
        "templates",
        "static",
    }
    kinds = {Path(name).suffix for name in image}
    assert kinds <= {
        "",
        ".py",
        ".html",
        ".txt",
        ".css",
        ".js",
        ".json",
        ".jsonl",
        ".svg",
        ".md",
        ".sh",  # how the charts are built, next to what came of it
        ".toml",
        ".typed",
        ".woff2",
        ".yaml",  # rubrics that ship
    }, kinds


def test_nothing_that_runs_is_left_out(tree: Path, image: dict[str, str]) -> None:
    folders = ("apps/", "workers/", "templates/", "static/")
    listed = subprocess.run(
        ["git", "ls-files", *folders], cwd=ROOT, capture_output=True, text=True, check=True
    )
    assert set(listed.stdout.splitlines()) - set(image.values()) == set()


_LOOK = """
import pkgutil, sys
from importlib import import_module
from pathlib import Path
import django
django.setup()
from django.core.management import call_command
from django.template.loader import get_template
import apps
here = Path.cwd()
assert Path(apps.__path__[0]).parent == here, apps.__path__
call_command("check")
for found in pkgutil.walk_packages(apps.__path__, "apps."):
    if found.name != "apps.config.asgi":
        import_module(found.name)
for path in (here / "templates").rglob("*.html"):
    get_template(str(path.relative_to(here / "templates")))
import workers, workers.schema.recipe
assert Path(workers.__path__[0]).parent == here
print("enough")
"""


@pytest.mark.slow
def test_it_is_enough_to_run_and_nothing_is_written_into_it(image: dict[str, str], tmp_path: Path) -> None:
    """Every app is imported and every template compiled from a copy of just those files."""
    root = tmp_path / "opt"
    for target, source in image.items():
        (root / target).parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(ROOT / source, root / target)
    before = {path: path.stat().st_mtime_ns for path in root.rglob("*")}
    environment = {
        name: value for name, value in os.environ.items() if name in ("PATH", "LANG", "DATABASE_URL")
    }
    environment |= {"DJANGO_SETTINGS_MODULE": "apps.config.settings", "PYTHONDONTWRITEBYTECODE": "1"}
    environment |= {"TOUCHSTONE_HOME": str(tmp_path / "data"), "TMPDIR": str(tmp_path), "HOME": str(tmp_path)}
    done = subprocess.run(
        [sys.executable, "-c", _LOOK], cwd=root, env=environment, capture_output=True, text=True, check=False
    )
    assert done.stdout.strip().endswith("enough"), done.stderr
    assert {path: path.stat().st_mtime_ns for path in root.rglob("*")} == before


def test_the_image_is_built_from_locked_files_and_run_by_nobody() -> None:
    assert DOCKERFILE.count("\nFROM ") == 2
    assert "--require-hashes --no-deps --only-binary :all: -r requirements/lock-${TORCH}.txt" in DOCKERFILE
    final = DOCKERFILE.split("\nFROM ")[2]
    assert re.search(r"^USER 10001:10001$", final, re.MULTILINE) and "HEALTHCHECK" in final
    assert final.index("USER") > final.index("COPY")
    # A base without a digest is no one's default.
    assert re.search(r"^ARG PYTHON_IMAGE$", DOCKERFILE, re.MULTILINE)
    names = re.findall(r"^(?:ARG|ENV) (\w+)", DOCKERFILE, re.MULTILINE)
    assert not [name for name in names if re.search(r"SECRET|PASSWORD|TOKEN|KEY", name)]


@pytest.mark.parametrize(
    ("patterns", "path", "ignored"),
    [
        ("*\n!apps", "apps/core/x.py", False),
        ("*\n!apps", "docs/x.md", True),
        ("*\n!apps\n**/*.key", "apps/a/b.key", True),
        ("**/*.key\n*\n!apps", "apps/a/b.key", False),  # the last line that matches decides
        ("*.py[cod]", "x.pyc", True),
        ("*.py[cod]", "a/x.pyc", False),
        ("**/.*", "apps/.hidden/x", True),
        ("/var/", "var/x", True),
        ("**/var", "a/var/b/c", True),
        ("**/var", "a/variable", False),
        ("# *\n", "x", False),
    ],
)
def test_the_interpreter_of_patterns(patterns: str, path: str, ignored: bool) -> None:
    assert Ignore(patterns)(path) is ignored
