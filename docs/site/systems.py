"""docs/systems.md, from docs/systems.toml: what to use here for each system of the field. Run it to write the page.

A row is linked to what shows it: a test (`tests/FILE::NAME`), a benchmark (`benchmarks/FILE`) or a heading of a page
(`docs/FILE#ANCHOR`). What a row lacks is said in it, so that a row works if it says nothing of the kind.
"""

import tomllib
from dataclasses import dataclass
from pathlib import Path

DOCS = Path(__file__).parents[1]
TABLE = DOCS / "systems.toml"
PAGE = DOCS / "systems.md"

AREAS = {
    "feedback": "Reward models from feedback",
    "conditions": "Goals, references, principles and demonstrations",
    "components": "Composed rewards",
    "judges": "Judges, rubrics and written policies",
    "evaluation": "Evaluation, robustness and safety",
    "training": "Training policies, and search",
    "text": "Trajectories of text agents",
    "teams": "Trajectories of several agents",
    "numbers": "Numbers and control",
    "pictures": "Screens, pictures and clips",
    "people": "People",
    "surveys": "Surveys",
}


@dataclass(frozen=True)
class System:
    """A row. missing: what it does not do yet, empty where it works."""

    number: int
    title: str
    area: str
    use: str
    evidence: tuple[str, ...]
    missing: str = ""


def systems() -> list[System]:
    """The rows of the table, as they stand in the file."""
    rows = tomllib.loads(TABLE.read_text())["system"]
    return [System(**{**row, "evidence": tuple(row["evidence"])}) for row in rows]


def page(rows: list[System]) -> str:
    """The page of `rows` in Markdown, by area."""
    works = sum(not row.missing for row in rows)
    lines = [
        "# Systems",
        "",
        f"The product was planned after {len(rows)} published systems and papers. For each, this table says what to "
        f"use here and what shows that it works. {works} rows work, {len(rows) - works} lack something, which the row "
        "names. The vocabulary of surveys is in [Landscape](landscape.md). "
        "`python -m docs.site.systems` writes this page from `docs/systems.toml`; a test fails on a dead link.",
    ]
    for area, title in AREAS.items():
        here = [row for row in rows if row.area == area]
        lines += ["", f"## {title}", "", "| | system | use | shown by | lacks |", "|---|---|---|---|---|"]
        lines += [_row(row) for row in sorted(here, key=lambda row: row.number)]
    return "\n".join([*lines, ""])


def _row(row: System) -> str:
    links = ", ".join(_link(evidence) for evidence in row.evidence)
    return f"| {row.number} | {row.title} | {row.use} | {links} | {row.missing} |".replace("|  |", "| |")


def _link(evidence: str) -> str:
    if evidence.startswith("docs/"):
        target = evidence.removeprefix("docs/")
        return f"[{target.partition('#')[2].replace('-', ' ')}]({target})"
    path = evidence.partition("::")[0]
    return f"[`{Path(path).stem}`](../{path})"


def main() -> None:
    PAGE.write_text(page(systems()))


if __name__ == "__main__":
    main()
