"""The bill of materials: by its standard's own validator, and complete."""

import hashlib
import json
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from cyclonedx.schema import SchemaVersion
from cyclonedx.validation.json import JsonStrictValidator
from packaging.utils import canonicalize_name

ROOT = Path(__file__).parents[1]


@pytest.fixture(scope="module")
def text(tmp_path_factory: pytest.TempPathFactory) -> str:
    path = tmp_path_factory.mktemp("sbom") / "sbom.json"
    command = [sys.executable, ".ci/sbom", "--torch", "cpu", "--out", str(path)]
    subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True)
    return path.read_text()


@pytest.fixture(scope="module")
def bill(text: str) -> dict[str, Any]:
    return json.loads(text)  # type: ignore[no-any-return]


def test_it_follows_the_schema(text: str) -> None:
    assert JsonStrictValidator(SchemaVersion.V1_6).validate_str(text) is None


def test_every_locked_distribution_is_in_it_with_its_hashes(bill: dict[str, Any]) -> None:
    lock = "".join((ROOT / "requirements" / name).read_text() for name in ("lock.txt", "lock-cpu.txt"))
    locked = {
        canonicalize_name(name): version for name, version in re.findall(r"^([\w.-]+)==([^\s;]+)", lock, re.M)
    }
    purls = {
        each["name"]: each for each in bill["components"] if each.get("purl", "").startswith("pkg:pypi/")
    }
    assert {name: each["version"] for name, each in purls.items()} == locked
    for each in purls.values():
        assert each["externalReferences"][0]["hashes"], each["name"]
    # Licences of what is installed here, which is all but a few.
    assert sum("licenses" in each for each in purls.values()) > len(purls) - 5


def test_what_is_vendored_is_in_it_file_by_file(bill: dict[str, Any]) -> None:
    npm = {each["name"]: each for each in bill["components"] if each.get("purl", "").startswith("pkg:npm/")}
    assert set(npm) == {"bootstrap", "htmx.org", "echarts"}
    files = {
        file["name"]: file["hashes"][0]["content"] for each in npm.values() for file in each["components"]
    }
    there = [*(ROOT / "static/vendor").rglob("*.js"), *(ROOT / "static/vendor").rglob("*.css")]
    assert files == {
        str(path.relative_to(ROOT)): hashlib.sha256(path.read_bytes()).hexdigest() for path in there
    }


def test_ours_and_the_embedded_database_are_in_it_and_who_needs_whom(bill: dict[str, Any]) -> None:
    assert bill["metadata"]["component"]["name"] == "touchstone-rewards"
    needs = {each["ref"]: set(each.get("dependsOn", ())) for each in bill["dependencies"]}
    assert "touchstone-rewards-client" in needs["touchstone-rewards"]
    assert any("embedded:postgresql" in below for below in needs.values())
    reached, waiting = set(), ["touchstone-rewards"]
    while waiting:
        ref = waiting.pop()
        reached.add(ref)
        waiting += needs.get(ref, set()) - reached
    left = {each["bom-ref"] for each in bill["components"]} - reached
    # Only what an extra or another Python asks for is asked by no one here.
    assert len(left) < 8, left
