"""Lines that `up` prints once everything runs.

Apps register them in AppConfig.ready, and import what they need when called: `up` loads no registry.
"""

from collections.abc import Callable

START_NOTICES: list[Callable[[str], str]] = []


def register(notice: Callable[[str], str]) -> None:
    """notice: given the address of the pages, a line, or nothing where there is nothing to print."""
    START_NOTICES.append(notice)


def start_lines(url: str) -> list[str]:
    return [line for notice in START_NOTICES if (line := notice(url))]
