"""Code blocks of README and docs that can be run, and the comments before them that say why one is not.

    <!-- not run (gpu): vLLM needs one -->
    <!-- run by tests/rewards/test_trainers_page.py: with a tiny policy -->
    <!-- long: chooses a recipe -->

`long` blocks run in `make docs-check` only; all others in `make test-slow` too.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass

from docs.site.page_tree import blocks
from tests.snippets import ROOT, Snippet, documents, is_shell

REASONS = {
    "gpu": "needs a GPU",
    "cluster": "needs SLURM, Kubernetes or Ray",
    "another program": "runs another program, which is not in this environment",
    "installation": "installs packages from an index, or changes this machine",
    "language model": "needs a server of a language model, or its key",
    "weights": "needs the weights of a public model",
    "people": "waits for annotators",
    "fragment": "is part of a file, or shows the shape of something",
    "hours": "takes longer than `make docs-check` may",
}
_MARK = re.compile(
    r"<!-- (not run \((?P<reason>[a-z ]+)\)|run by (?P<test>\S+)|(?P<long>long)): (?P<why>[^<>]+?) -->"
)


@dataclass(frozen=True)
class MarkedBlock:
    snippet: Snippet
    is_python: bool
    reason: str = ""  # of REASONS; empty where it runs
    test: str = ""  # that runs it instead
    is_long: bool = False

    @property
    def runs(self) -> bool:
        return not self.reason and not self.test

    @property
    def is_in_ci(self) -> bool:
        """Run by the slow tests of this folder."""
        return self.runs and not self.is_long


def marked_blocks() -> Iterator[MarkedBlock]:
    for page in documents():
        before, number = "", 0
        for is_code, text in blocks((ROOT / page).read_text()):
            if not is_code:
                before = text
                continue
            number += 1
            lines = text.splitlines()
            language = lines[0].strip().strip("`")
            snippet = Snippet(page, number, language, "\n".join(lines[1:-1]))
            is_python = language == "python"
            if (
                is_python
                or language in ("sh", "bash", "console")
                or (not language and is_shell(snippet.code))
            ):
                yield _marked(snippet, is_python, before)
            before = ""


def _marked(snippet: Snippet, is_python: bool, before: str) -> MarkedBlock:
    last = (before.strip().splitlines() or [""])[-1]
    found = _MARK.fullmatch(last)
    if found is None:
        if last.startswith("<!--"):
            raise ValueError(f"{snippet}: {last} is no mark that tests/docs_check/marked_blocks.py knows.")
        return MarkedBlock(snippet, is_python)
    reason, test = found["reason"] or "", found["test"] or ""
    if reason and reason not in REASONS:
        raise ValueError(f"{snippet}: {reason!r} is not a reason; use one of {', '.join(REASONS)}.")
    if test and not (ROOT / test).is_file():
        raise ValueError(f"{snippet}: there is no {test}.")
    return MarkedBlock(snippet, is_python, reason, test, bool(found["long"]))
