"""What CI makes of the dependency audit."""

import io
import json
import tarfile
from importlib.machinery import SourceFileLoader
from importlib.util import module_from_spec, spec_from_loader
from pathlib import Path
from typing import Any

import pytest


@pytest.fixture(scope="module")
def audit() -> Any:
    loader = SourceFileLoader("audit", str(Path(__file__).parents[1] / ".ci" / "audit"))
    spec = spec_from_loader("audit", loader)
    assert spec is not None
    module = module_from_spec(spec)
    loader.exec_module(module)
    return module


def _said(*dependencies: dict[str, Any]) -> str:
    return json.dumps({"dependencies": list(dependencies), "fixes": []})


GOOD = {"name": "attrs", "version": "1", "vulns": []}
SKIPPED = {"name": "torch", "skip_reason": "not found"}
BAD = {"name": "django", "version": "5", "vulns": [{"id": "CVE-1", "fix_versions": ["5.1"]}]}


def test_a_vulnerability_fails_and_is_named(audit: Any) -> None:
    status, words = audit.judge(_said(GOOD, SKIPPED, BAD))
    assert status == 1
    assert "2 of 3 packages looked at, 1 known" in words and "django 5: CVE-1, mended in 5.1" in words


def test_none_is_good(audit: Any) -> None:
    assert audit.judge(_said(GOOD, SKIPPED))[0] == 0


@pytest.mark.parametrize("output", ["", "Traceback ...", _said(SKIPPED)])
def test_without_a_database_it_is_skipped_in_words(audit: Any, output: str) -> None:
    status, words = audit.judge(output)
    assert status == 0 and "skipped" in words


def test_everything_that_is_pinned_is_looked_at(audit: Any) -> None:
    pinned = [line.partition("==")[0] for line in audit.pins()]
    assert {"django", "torch", "bandit", "nvidia-cublas"} <= {name.lower() for name in pinned}
    assert len(pinned) == len(set(pinned)) and not [
        line for line in audit.pins() if "+" in line or "\\" in line
    ]


def test_vendored_libraries_are_looked_at(audit: Any) -> None:
    assert set(audit.vendored()) == {"bootstrap", "htmx.org", "echarts"}
    answer = {"vulnerabilities": {"bootstrap": {"severity": "moderate", "range": "<5.3.9"}}}
    assert audit.judge_vendored(json.dumps(answer)) == (
        1,
        "vendored libraries: 1 with known vulnerabilities\nbootstrap: moderate, <5.3.9",
    )
    assert audit.judge_vendored(json.dumps({"vulnerabilities": {}}))[0] == 0


@pytest.mark.parametrize("output", ["", "npm ERR!", '{"message": "405 Method Not Allowed"}'])
def test_without_an_answer_about_them_it_is_skipped_in_words(audit: Any, output: str) -> None:
    status, words = audit.judge_vendored(output)
    assert status == 0 and "skipped" in words


def test_a_fault_of_our_own_code_fails_and_is_named(
    audit: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "bad.py").write_text("import subprocess\n\ndef run(x):\n    subprocess.run(x, shell=True)\n")
    command = [each for each in audit.BANDIT if each not in audit.CODE]
    monkeypatch.setattr(audit, "BANDIT", [*command, str(tmp_path / "bad.py")])
    status, words = audit.audit_code()
    assert status == 1 and "bad.py:4: B602" in words
    (tmp_path / "bad.py").write_text("x = 1\n")
    assert audit.audit_code() == (0, "bandit: 0 new findings")


def test_that_bandit_fails_is_no_pass(audit: Any) -> None:
    assert audit.judge_code("Traceback ...")[0] == 1
    unread = {"results": [], "errors": [{"filename": "x.py", "reason": "syntax error"}]}
    assert audit.judge_code(json.dumps(unread))[0] == 1


def test_a_vendored_file_that_is_not_its_authors_fails(audit: Any, tmp_path: Path) -> None:
    archive = tmp_path / "htmx.org-2.tgz"
    with tarfile.open(archive, "w:gz") as packed:
        for name, content in (
            ("package/dist/htmx.min.js", b"good\n//# sourceMappingURL=x\n"),
            ("package/a.js", b""),
        ):
            entry = tarfile.TarInfo(name)
            entry.size = len(content)
            packed.addfile(entry, io.BytesIO(content))
    folder = audit.VENDOR / "htmx"
    assert audit.unlike(archive, folder) == ["static/vendor/htmx/htmx.min.js"]
    with tarfile.open(archive, "w:gz") as packed:
        packed.add(folder / "htmx.min.js", "package/dist/htmx.min.js")
    assert audit.unlike(archive, folder) == []
