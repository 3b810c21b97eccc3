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
    tree = (ROOT / "docs/architecture.md").read_text().split("## Repository layout")[1].split("```")[1]
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


def test_the_readme_is_short() -> None:
    assert len((ROOT / "README.md").read_text().split()) <= 500


def test_the_comparison_of_the_readme_is_that_of_the_docs() -> None:
    page = (ROOT / "docs/comparison.md").read_text()
    rows = {cells[0]: cells for cells in _rows(page) if len(cells) == 5 and cells[0] != "what people do"}
    head, *told = _rows((ROOT / "README.md").read_text())
    ours = [cells for cells in told if cells[0] in rows]
    assert len(ours) == len(told) - 1  # the last row is about rewards, which the page has in words
    for what, here, *others in ours:
        found_in = rows[what][1].split(", ")
        expected = [
            "yes" if product in found_in else "Enterprise" if f"{product} (E)" in found_in else "-"
            for product in head[2:]
        ]
        assert (here, others) == (rows[what][2], expected), what
    assert "rewards for a trainer that are trained on the annotations" in " ".join(page.split())
    count = re.search(r"All (\d+) rows", (ROOT / "README.md").read_text())
    assert count and int(count[1]) == len(rows)


def _rows(markdown: str) -> list[list[str]]:
    """Cells of the rows of tables, without the lines between head and body."""
    lines = [line for line in markdown.splitlines() if line.startswith("|") and not line.startswith("|--")]
    return [[cell.strip() for cell in line.strip("|").split("|")] for line in lines]
