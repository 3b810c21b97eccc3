"""docs/model-exports.md has the tables that the code says."""

from benchmarks.export_table import DOCS, table


def test_the_tables_are_those_of_the_code() -> None:
    """`python -m benchmarks.export_table --write` writes them."""
    assert "\n".join(table()) in DOCS.read_text()
