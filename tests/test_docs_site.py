"""The documentation site: how pages are split, where links lead, which terms are linked, and that Sphinx builds it."""

import re
import subprocess
import sys
from pathlib import Path

import pytest

from docs.site import build, links
from docs.site.page_tree import LONGEST, SitePage, blocks, parse, slug, split

ROOT = Path(__file__).parents[1]
PAGE = """# Rewards

Begin here.

## Scores

```
# no heading
```

### By step

## Scores
"""


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, dict[str, SitePage]]:
    out = tmp_path_factory.mktemp("site")
    return out, build.sources(out)


def test_headings_in_code_are_none_and_repeated_ones_are_numbered() -> None:
    tree = parse(PAGE)
    assert [section.title for section in tree.sections] == ["Scores", "Scores"]
    assert list(tree.anchors()) == ["rewards", "scores", "by-step", "scores-1"]


@pytest.mark.parametrize("text", ["Words first.\n\n# Title\n", "## Second level\n", "# One\n\n# Two\n", ""])
def test_a_file_without_one_title_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match=r"level 1|begins with"):
        parse(text)


@pytest.mark.parametrize(
    ("title", "expected"),
    [
        ("Fields of a result", "fields-of-a-result"),
        ("`td`: V and Q", "td-v-and-q"),
        ("OWASP ASVS 4.0.3", "owasp-asvs-403"),
    ],
)
def test_anchors_are_those_of_github(title: str, expected: str) -> None:
    assert slug(title) == expected


def test_only_long_pages_are_split_and_nothing_is_lost() -> None:
    short = split(parse(PAGE), "rewards")
    assert (short.children, [page.place for page in short.walk()]) == ([], ["rewards"])
    long = split(parse(PAGE.replace("Begin here.", "word " * (LONGEST + 1))), "rewards")
    assert [page.place for page in long.walk()] == ["rewards", "rewards/scores", "rewards/scores-1"]
    assert "## By step" in long.children[0].text


def test_a_link_follows_its_heading_to_the_page_it_is_on() -> None:
    long = split(parse(PAGE.replace("Begin here.", "word " * (LONGEST + 1))), "rewards")
    page = SitePage(
        "guides/first",
        "First",
        "See [steps](rewards.md#by-step), `[x](rewards.md)`... [a](rewards.md).",
        ["first"],
    )
    site_links = links.SiteLinks({"rewards": long, "first": page}, frozenset(), {}, lambda path: False)
    assert "[steps](../rewards/scores.md#by-step)" in site_links.rewritten(page, "first")
    assert "[a](../rewards.md)" in site_links.rewritten(page, "first")


@pytest.mark.parametrize("target", ["rewards.md#nothing", "nothing.md", "images/nothing.png"])
def test_a_dead_link_is_named(target: str) -> None:
    page = SitePage("first", "First", f"A [link]({target}).", ["first"])
    rewards = split(parse(PAGE), "rewards")
    site_links = links.SiteLinks({"rewards": rewards, "first": page}, frozenset(), {}, lambda path: False)
    with pytest.raises(links.DeadLink, match=re.escape(target)):
        site_links.rewritten(page, "first")


def test_the_first_use_of_a_term_in_prose_is_linked() -> None:
    terms = {"item": "item", "items": "item", "gold item": "gold item"}
    text = "# Items and item\n\n`item` and [item](x.md): a gold item, items and an item.\n\n```\nitem\n```\n"
    expected = "{term}`gold item <gold item>`, {term}`items <item>` and an item."
    assert links.with_terms(text, terms).split("a ", 1)[1].startswith(expected)
    assert links.with_terms(text, terms).count("{term}") == 2


# Single tables, which have nothing to split by: what each has a row for.
LONG_TABLES = {
    "comparison/researchers": "what researchers do in other products",
    "formats/list-of-formats": "a format",
    "formats/public-files": "a public file",
    "glossary": "a term",
    "security/owasp-asvs-403-level-2": "a requirement of the standard",
    "trajectories/import/fields-that-are-not-read/fields-of-each-format": "a format",
    "trajectories/import/published-files/broken-files": "a format",
}


def test_pages_are_short_but_for_tables_that_are_known(site: tuple[Path, dict[str, SitePage]]) -> None:
    pages = {page.place: page.text for first in site[1].values() for page in first.walk()}
    assert {place for place, text in pages.items() if len(text.split()) > LONGEST + 100} == LONG_TABLES.keys()
    for place in LONG_TABLES:
        prose = "\n".join(line for line in pages[place].splitlines() if not line.startswith("|"))
        assert len(prose.split()) <= 400, place


def test_every_command_and_recipe_key_is_in_the_reference(site: tuple[Path, dict[str, SitePage]]) -> None:
    from dataclasses import fields

    from workers.schema.recipe import Recipe

    _, pages = site
    commands = " ".join(page.text for page in pages["commands"].walk())
    recipes = " ".join(page.text for page in pages["recipes"].walk())
    names = {path.stem for path in ROOT.glob("apps/*/management/commands/*.py")} - {"__init__"}
    assert {name for name in names if f"## {name}\n" not in commands} == set()
    assert {field.name for field in fields(Recipe) if f"| `{field.name}` |" not in recipes} == set()


@pytest.mark.slow
def test_sphinx_builds_the_site_without_a_warning(tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-m", "docs.site.build", str(tmp_path)],
        capture_output=True,
        text=True,
        check=False,
        cwd=ROOT,
    )
    assert (done.returncode, done.stderr) == (0, "")
    index = (tmp_path / "index.html").read_text()
    assert "How-to guides" in index
    assert (tmp_path / "searchindex.js").stat().st_size > 100_000


def test_blocks_give_the_text_back() -> None:
    for path in sorted((ROOT / "docs").glob("*.md")):
        text = path.read_text()
        assert "".join(part for _, part in blocks(text)) == text, path.name
