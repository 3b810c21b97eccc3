"""Code blocks of README and docs that can be run, and the comments before them that say why one is not.

    <!-- not run (gpu): vLLM needs one -->
    <!-- run by tests/rewards/test_trainers_page.py: with a tiny policy -->
    <!-- run by tests/examples/test_policies.py::test_trl_learns_what_is_paid: a few steps -->
    <!-- long: chooses a recipe -->

`long` blocks run in `make docs-check` only; all others in `make test-slow` too. Of a file that has tests for
`make test-long`, which CI does not run, the one that runs the block is named.
"""

import ast
import re
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cache

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
    r"<!-- (not run \((?P<reason>[a-z ]+)\)|run by (?P<test>[\w/.]+)(?:::(?P<function>\w+))?|(?P<long>long)): "
    r"(?P<why>[^<>]+?) -->"
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
    is_long = bool(found["long"]) or bool(test and _is_long_test(str(snippet), test, found["function"] or ""))
    return MarkedBlock(snippet, is_python, reason, test, is_long)


def _is_long_test(snippet: str, file: str, function: str) -> bool:
    """Whether CI leaves it out. function: empty where no test of the file is long."""
    if not (ROOT / file).is_file():
        raise ValueError(f"{snippet}: there is no {file}.")
    long = _long_tests(file)
    if function and function not in long:
        raise ValueError(f"{snippet}: there is no {function} in {file}.")
    if not function and any(long.values()):
        raise ValueError(
            f"{snippet}: some tests of {file} are long, so name the one that runs it: {file}::NAME."
        )
    return bool(function) and long[function]


@cache
def _long_tests(file: str) -> dict[str, bool]:
    """By name, whether a test is left to `make test-long`."""
    tree = ast.parse((ROOT / file).read_text())
    whole = any(
        isinstance(node, ast.Assign)
        and "pytestmark" in ast.unparse(node)
        and "mark.long" in ast.unparse(node)
        for node in tree.body
    )
    return {
        node.name: whole or any("mark.long" in ast.unparse(decorator) for decorator in node.decorator_list)
        for node in tree.body
        if isinstance(node, ast.FunctionDef) and node.name.startswith("test")
    }


def counts(every: Sequence[MarkedBlock]) -> list[str]:
    """How each block of shell or Python is run, a line each; docs/architecture.md has the same lines."""
    by_tests = sum(bool(block.test) and not block.is_long for block in every)
    by_long_tests = sum(bool(block.test) and block.is_long for block in every)
    in_ci = sum(block.is_in_ci for block in every)
    reasons = Counter(block.reason for block in every if block.reason)
    in_docs_check = sum(block.runs and block.is_long for block in every)
    return [
        f"{len(every)} blocks of shell and Python in README and docs",
        f"{in_ci + by_tests} run in CI: {in_ci} by tests/docs_check, {by_tests} by tests named before them",
        f"{in_docs_check} take over 30 s and run in `make docs-check`, as do those of tests/docs_check",
        f"{by_long_tests} run in `make test-long`, by tests named before them",
        f"{reasons.total()} are not run; the reason is written before each:",
        *(f"{count:4} {reason}: {REASONS[reason]}" for reason, count in reasons.most_common()),
    ]
