"""The lock files: complete, equal to what is tested here, each file by its hash, and readable by pip."""

import re
import subprocess
import sys
import tomllib
from collections.abc import Iterator
from importlib.metadata import PackageNotFoundError, distribution
from pathlib import Path

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

ROOT = Path(__file__).parents[1]
FOLDER = ROOT / "requirements"
LOCKS = ["lock-cpu.txt", "lock-cuda.txt"]


def _entries(name: str) -> Iterator[tuple[Requirement, list[str]]]:
    joined = (FOLDER / name).read_text().replace("\\\n", " ")
    for line in joined.splitlines():
        if line.startswith("-r "):
            yield from _entries(line.removeprefix("-r ").strip())
        elif line and not line.startswith("#"):
            requirement, *hashes = re.split(r"\s+--hash=", line.strip())
            yield Requirement(requirement), hashes


def _pins(lines: str) -> dict[str, str]:
    pinned = [Requirement(line) for line in lines.splitlines() if line and not line.startswith("#")]
    return {canonicalize_name(record.name): str(record.specifier).removeprefix("==") for record in pinned}


@pytest.fixture(params=LOCKS)
def lock(request: pytest.FixtureRequest) -> dict[str, tuple[str, list[str]]]:
    found = {}
    for one, hashes in _entries(request.param):
        (specifier,) = one.specifier
        assert specifier.operator == "==" and not one.url and not one.extras
        assert canonicalize_name(one.name) not in found
        found[canonicalize_name(one.name)] = (specifier.version, hashes)
    return found


def test_every_distribution_has_hashes(lock: dict[str, tuple[str, list[str]]]) -> None:
    assert len(lock) > 100
    for name, (_, hashes) in lock.items():
        assert hashes and all(re.fullmatch(r"sha256:[0-9a-f]{64}", each) for each in hashes), name


def test_versions_are_those_that_are_tested(lock: dict[str, tuple[str, list[str]]]) -> None:
    pins = _pins((ROOT / "constraints.txt").read_text())
    common = pins.keys() & lock.keys()
    assert len(common) > 90
    different = {name for name in common if lock[name][0].removesuffix("+cpu") != pins[name]}
    assert different == set(), "run `make lock`"
    # What constraints.txt does not name are the parts of CUDA, the build tool and what only some Pythons need.
    assert {name for name in lock.keys() - pins.keys() if not re.match(r"(nvidia|cuda)-|triton$", name)} <= {
        "async-timeout",
        "setuptools",
    }


def test_it_is_complete(lock: dict[str, tuple[str, list[str]]]) -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    client = tomllib.loads((ROOT / "client/pyproject.toml").read_text())["project"]
    needed = [*project["dependencies"], *project["optional-dependencies"]["s3"], *client["dependencies"]]
    for line in needed:
        one = Requirement(line)
        version = lock[canonicalize_name(one.name)][0].removesuffix("+cpu")
        assert one.specifier.contains(version), line
    # By --no-deps nothing else is installed: setuptools builds the two of ours.
    assert "setuptools" in lock


def _asked_below(roots: list[Requirement]) -> set[str]:
    """Whatever the roots need, and what that needs, with the extras that are asked for; as it is installed here."""
    seen: set[tuple[str, frozenset[str]]] = set()
    waiting = [(canonicalize_name(root.name), frozenset(root.extras)) for root in roots]
    while waiting:
        name, extras = waiting.pop()
        if (name, extras) in seen:
            continue
        seen.add((name, extras))
        try:
            lines = distribution(name).requires or []
        except PackageNotFoundError:  # torch's parts of CUDA, where its CPU build is installed
            continue
        for line in map(Requirement, lines):
            if line.marker is None or any(line.marker.evaluate({"extra": extra}) for extra in extras or {""}):
                waiting.append((canonicalize_name(line.name), frozenset(line.extras)))
    return {name for name, _ in seen}


def test_what_is_needed_further_down_is_in_it(lock: dict[str, tuple[str, list[str]]]) -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    lines = [*project["dependencies"], *project["optional-dependencies"]["s3"]]
    roots = [line for line in map(Requirement, lines) if line.marker is None or line.marker.evaluate()]
    assert _asked_below(roots) - lock.keys() == set(), "run `make lock`"


def test_the_two_builds_differ_in_torch_alone() -> None:
    cpu, cuda = (
        {canonicalize_name(one.name): str(one.specifier) for one, _ in _entries(name)} for name in LOCKS
    )
    assert cpu["torch"] == f"{cuda['torch']}+cpu"
    assert not [name for name in cpu if re.match(r"(nvidia|cuda)-|triton$", name)]
    assert {name for name in cuda if cuda[name] != cpu.get(name)} - {"torch"} == {
        name for name in cuda if re.match(r"(nvidia|cuda)-|triton$", name)
    }


def test_the_cpu_build_has_a_file_for_every_python_and_machine() -> None:
    listed = dict(reversed(line.split()) for line in (FOLDER / "torch-cpu.sha256").read_text().splitlines())  # type: ignore[misc]
    (torch,) = (each for each in _entries("lock-cpu.txt") if each[0].name == "torch")
    assert sorted(torch[1]) == sorted(f"sha256:{digest}" for digest in listed.values())
    found = {tuple(re.search(r"\+cpu-cp(\d+)-.*_(x86_64|aarch64)\.whl", name).groups()) for name in listed}  # type: ignore[union-attr]
    assert found == {
        (python, machine) for python in ("311", "312", "313") for machine in ("x86_64", "aarch64")
    }


@pytest.mark.parametrize("name", LOCKS)
def test_pip_reads_it_and_wants_nothing_without_a_hash(name: str) -> None:
    """Without an index the first distribution is not found; what pip could not read it would have refused before."""
    command = [sys.executable, "-m", "pip", "--isolated", "install", "--dry-run", "--ignore-installed"]
    command += [
        "--require-hashes",
        "--no-deps",
        "--only-binary",
        ":all:",
        "--no-index",
        "-r",
        f"requirements/{name}",
    ]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert "No matching distribution found for accelerate==" in done.stderr, done.stderr


def test_no_host_is_named() -> None:
    for path in FOLDER.iterdir():
        assert not re.search(
            r"https?://|^--(extra-)?index-url|^--find-links", path.read_text(), re.MULTILINE
        ), path
