import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]


def test_the_settings_table_names_every_variable_and_no_other():
    code = "".join(path.read_text() for path in (ROOT / "apps").rglob("*.py"))
    read = set(re.findall(r'env_\w+\(\s*"([A-Z0-9_]+)"', code))
    table = (ROOT / "docs/settings.md").read_text()
    assert set(re.findall(r"`((?:TOUCHSTONE|DATABASE|CELERY|AWS)_[A-Z0-9_]+)`", table)) == read


def test_the_tree_names_what_is_there():
    tree = (ROOT / "README.md").read_text().split("## Repository layout")[1].split("```")[1]
    top = {path.name for path in ROOT.iterdir() if path.is_dir() and (path / "__init__.py").exists()}
    named = set(re.findall(r"(\w+)/", tree))
    assert top <= named


@pytest.mark.parametrize("folder", ["apps", "workers"])
def test_the_architecture_page_has_a_line_for_each_package(folder):
    page = (
        (ROOT / "docs/architecture.md").read_text().split(f"## Packages of `{folder}`")[1].split("\n## ")[0]
    )
    packages = {path.parent.name for path in (ROOT / folder).glob("*/__init__.py")}
    assert set(re.findall(r"^\| `(\w+)` \|", page, re.MULTILINE)) == packages


PAGES = [ROOT / "README.md", ROOT / "client/README.md", *sorted((ROOT / "docs").glob("*.md"))]


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_what_a_page_links_to_is_there(page):
    links = re.findall(r"\]\(([^)#]+)[^)]*\)", page.read_text())
    assert [link for link in links if "://" not in link and not (page.parent / link).exists()] == []
