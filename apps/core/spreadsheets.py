"""Cells of tables that spreadsheets open, and what was in them."""

import json
from typing import Any

# https://owasp.org/www-community/attacks/CSV_Injection: what a spreadsheet runs, and the full-width forms, which some
# read as the others; spaces and marks before them are skipped.
_FORMULA = ("=", "+", "-", "@", "\t", "\r", "\n", "\uff1d", "\uff0b", "\uff0d", "\uff20")
_SKIPPED = " \u00a0\u3000\ufeff\u200b"


def spreadsheet_cell(value: Any) -> Any:
    """Nested values as JSON; text that a spreadsheet would run as a formula is prefixed with an apostrophe."""
    if isinstance(value, dict | list | tuple):
        return json.dumps(value, ensure_ascii=False)
    return f"'{value}" if isinstance(value, str) and _is_formula(value) else value


def cell_text(cell: str) -> str:
    """The text that `spreadsheet_cell` wrote as this cell."""
    return cell[1:] if cell.startswith("'") and _is_formula(cell[1:]) else cell


def _is_formula(text: str) -> bool:
    """Text in apostrophes too: so an apostrophe that was in the text is not taken for ours."""
    return text.lstrip("'" + _SKIPPED).startswith(_FORMULA)
