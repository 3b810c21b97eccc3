"""What a build of docs/operations/Dockerfile would be sent and would copy, without Docker.

Follows moby's patternmatcher: patterns are paths with `*`, `?`, `**`; one that matches a folder matches all below it; a
leading `!` takes back; the last line that matches decides.
"""

import re
from dataclasses import dataclass
from pathlib import Path, PurePosixPath


@dataclass(frozen=True)
class Copy:
    stage: str
    sources: tuple[str, ...]
    target: str


def _expression(pattern: str) -> re.Pattern[str]:
    parts = re.split(r"(\*\*/?|\*|\?|\[[^\]]*\])", pattern)
    known = {"**/": "(?:.*/)?", "**": ".*", "*": "[^/]*", "?": "[^/]"}
    return re.compile(
        "".join(known.get(part, part if part.startswith("[") else re.escape(part)) for part in parts)
    )


class Ignore:
    def __init__(self, text: str) -> None:
        lines = [line.strip() for line in text.splitlines()]
        self._lines = [
            (not line.startswith("!"), _expression(line.removeprefix("!").strip("/ ")))
            for line in lines
            if line and not line.startswith("#")
        ]

    def __call__(self, path: str) -> bool:
        """path: of a file, relative to the context."""
        places = [path, *(str(parent) for parent in PurePosixPath(path).parents if str(parent) != ".")]
        ignored = False
        for takes, expression in self._lines:
            if any(expression.fullmatch(place) for place in places):
                ignored = takes
        return ignored


def context(root: Path) -> list[str]:
    """Files that would be sent to the machine that builds."""
    ignored = Ignore((root / ".dockerignore").read_text())
    files = (str(path.relative_to(root)) for path in root.rglob("*") if path.is_file() or path.is_symlink())
    return sorted(file for file in files if not ignored(file))


def copies(dockerfile: str) -> list[Copy]:
    """COPY lines from the context, by the stage they are in; the last stage is "final"."""
    joined = dockerfile.replace("\\\n", " ")
    found, stage = [], ""
    for line in joined.splitlines():
        word, _, rest = line.strip().partition(" ")
        if word == "FROM":
            stage = rest.partition(" AS ")[2] or "final"
        elif word in ("COPY", "ADD") and not rest.startswith("--from="):
            assert word == "COPY" and not rest.startswith(("--", "[")), line
            *sources, target = rest.split()
            found.append(Copy(stage, tuple(sources), target))
    return found


def copied(files: list[str], lines: list[Copy]) -> dict[str, str]:
    """By its place in the image, relative to the working folder: the file of the context."""
    placed: dict[str, str] = {}
    for line in lines:
        for source in line.sources:
            assert "*" not in source and source not in (".", "./", "/"), (
                f"COPY {source} takes what nobody named"
            )
            for file in files:
                if file == source:
                    placed[
                        str(PurePosixPath(line.target) / file) if line.target.endswith("/") else line.target
                    ] = file
                elif file.startswith(f"{source}/"):
                    placed[str(PurePosixPath(line.target) / file.removeprefix(f"{source}/"))] = file
    return placed
