"""Commands of other distributions: found by their entry points, and none hinders another."""

import importlib
import subprocess
import sys
import tomllib
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from touchstone_client.cli import sources

from tests.client.cli.conftest import Touchstone

Install = Callable[[str, str, str], None]
ROOT = Path(__file__).parents[3]
PLUGIN = """
class Source:
    title = "Of a plug-in"
    def commands(self):
        return {"greet": "Say hello", "import": "Import more"}
    def run(self, name, arguments):
        print(name, *arguments)
        return 7 if "fail" in arguments else None
"""


@pytest.fixture
def install(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Install]:
    """install(name, code, entry point): a distribution, as pip leaves one."""
    monkeypatch.syspath_prepend(str(tmp_path))

    def make(name: str, code: str, point: str) -> None:
        (tmp_path / f"{name}.py").write_text(code)
        folder = tmp_path / f"{name}-1.0.dist-info"
        folder.mkdir()
        (folder / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: 1.0\n")
        (folder / "entry_points.txt").write_text(f"[{sources.GROUP}]\n{point}\n")

    yield make
    for name in [name for name in sys.modules if name.startswith("plug_")]:
        del sys.modules[name]


def test_commands_of_a_plug_in_are_listed_and_run(install: Install, touchstone: Touchstone) -> None:
    install("plug_one", PLUGIN, "one = plug_one:Source")
    listed = touchstone("--help").out
    assert (
        "Of a plug-in:" in listed
        and "greet       Say hello" in listed
        and "one import  Import more" in listed
    )
    assert touchstone("greet", "a", "--b").out == "greet a --b\n"
    assert touchstone("greet", "fail").status == 7
    # A name of the client is the client's; the prefix reaches the other one.
    assert touchstone("one", "import", "x").out == "import x\n"
    assert "FILE" in touchstone("import", "--help").out


@pytest.mark.parametrize(
    "code",
    [
        "raise RuntimeError('no database')",
        "import no_such_module_anywhere",
        "raise SystemExit(3)",
        "Source = 5",
        "class Source:\n    title = 'x'\n    def commands(self): return ['a']",
    ],
)
def test_a_broken_one_is_named_and_hinders_no_other(
    install: Install, touchstone: Touchstone, code: str
) -> None:
    install("plug_bad", code, "bad = plug_bad:Source")
    install("plug_good", PLUGIN, "good = plug_good:Source")
    found = touchstone("--help")
    assert found.status == 0 and "greet" in found.out
    assert "The commands `bad` of plug_bad cannot be loaded (plug_bad:Source: " in found.err
    assert touchstone("greet").status == 0
    unknown = touchstone("nothing")
    assert unknown.status == 2 and "of plug_bad cannot be loaded" in unknown.err


def test_the_client_looks_at_no_plug_in_for_its_own_commands(
    install: Install, touchstone: Touchstone
) -> None:
    install("plug_bad", "raise RuntimeError", "bad = plug_bad:Source")
    assert "plug_bad" not in touchstone("runs").err


def test_listing_the_servers_commands_does_not_import_django() -> None:
    code = (
        "import sys\nfrom touchstone_client.cli.main import main\n"
        "from apps.core.command_line import command_source\n"
        "found = command_source().commands()\n"
        "assert main(['--help']) == 0 and {'up', 'doctor', 'migrate', 'train'} <= set(found)\n"
        "assert all(found.values()), found\n"
        "assert not {'django', 'torch', 'numpy', 'pandas', 'tqdm'} & set(sys.modules)\n"
    )
    done = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


def test_the_servers_entry_point_runs_djangos_commands(tmp_path: Path) -> None:
    """Through the entry point as pyproject.toml declares it, whatever is installed here."""
    points = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["entry-points"][sources.GROUP]
    folder = tmp_path / "declared-1.0.dist-info"
    folder.mkdir()
    (folder / "METADATA").write_text("Metadata-Version: 2.1\nName: declared\nVersion: 1.0\n")
    lines = "".join(f"{name} = {value}\n" for name, value in points.items())
    (folder / "entry_points.txt").write_text(f"[{sources.GROUP}]\n{lines}")
    code = f"import sys; sys.path.insert(0, {str(tmp_path)!r}); from touchstone_client.cli.main import main\n"
    for arguments in (["manage", "deploy", "--help"], ["create_project", "--help"]):
        run = f"{code}sys.exit(main({arguments}))"
        done = subprocess.run(
            [sys.executable, "-c", run], cwd=ROOT, capture_output=True, text=True, check=False
        )
        assert done.returncode == 0, done.stderr
        assert f"usage: touchstone manage {arguments[-2]}" in done.stdout and "--home" in done.stdout


def test_the_declared_scripts_can_be_imported() -> None:
    client = tomllib.loads((ROOT / "client/pyproject.toml").read_text())["project"]
    server = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    # The server's wheel holds the client, whose script this is in both; installing one after the other changes nothing.
    assert list(client["scripts"]) == ["touchstone"] and server["scripts"] == client["scripts"]
    assert client["version"] == server["version"]
    assert client["scripts"]["touchstone"] == "touchstone_client.cli.main:main"


def test_another_package_under_an_import_name_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As where a stranger's `apps` comes first on the path."""
    ours, theirs = tmp_path / "ours", tmp_path / "theirs"
    for folder in (ours, theirs):
        (folder / "taken_name").mkdir(parents=True)
        (folder / "taken_name" / "__init__.py").touch()
    (ours / "taken_name" / "commands.py").write_text("def source(): ...")
    metadata = ours / "tools-1.0.dist-info"
    metadata.mkdir()
    (metadata / "METADATA").write_text("Name: tools\nVersion: 1.0\n")
    (metadata / "entry_points.txt").write_text("[touchstone.commands]\ntools = taken_name.commands:source\n")
    monkeypatch.setattr(sys, "path", [str(theirs), str(ours), *sys.path])
    importlib.invalidate_caches()
    found = next(source for source in sources.load_sources() if source.prefix == "tools")
    assert found.problem is not None and "install tools in a separate environment" in found.problem
    assert str(theirs / "taken_name") in found.problem
