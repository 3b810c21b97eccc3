"""Tables of benchmarks in the documentation, each between marks of its own."""

from collections.abc import Iterable
from pathlib import Path

from workers.errors import RewardError

_END = "<!-- end of what is written -->\n"


def write_between(path: Path, by: str, lines: Iterable[str]) -> None:
    """Put lines into this Markdown file in the place of those that the benchmark wrote before. Raises RewardError."""
    start = f"<!-- written by benchmarks.{by} -->\n"
    before, opening, rest = path.read_text(encoding="utf-8").partition(start)
    _, closing, after = rest.partition(_END)
    if not opening or not closing:
        raise RewardError(
            f"{path} has no place for these tables; put {start.strip()} and {_END.strip()} around it."
        )
    text = "\n".join(lines)
    path.write_text(f"{before}{opening}\n{text}\n{closing}{after}", encoding="utf-8")
