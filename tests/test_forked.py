"""A forked child writes to the files it opens, and what the test holds writes to none of them."""

import json
import logging
import os
import sys
from pathlib import Path

import pytest

from tests import forked

CHILD = """
import json, logging, os, sys
from pathlib import Path

folder, inherited = Path(sys.argv[1]), int(sys.argv[2])
files = [(folder / f"file-{number}").open("ab", buffering=0) for number in range(100)]
logging.getLogger("openai._base_client").info("Retrying request")
logging.getLogger("workers").warning("Said by the child")
os.write(inherited, b"written by what the test holds")
written = [path.name for path in folder.glob("file-*") if path.stat().st_size]
(folder / "written.json").write_text(json.dumps(written))
"""


def test_what_a_child_inherits_writes_to_no_file_of_the_child(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A log line once came between the answers of a judge run, under the number of a closed descriptor."""
    (tmp_path / "child_that_logs.py").write_text(CHILD)
    monkeypatch.syspath_prepend(tmp_path)
    log = tmp_path / "log.txt"
    with (tmp_path / "held").open("ab", buffering=0) as held:
        stale = logging.StreamHandler(held_text := os.fdopen(held.fileno(), "w", closefd=False))
        logging.getLogger().addHandler(stale)
        try:
            arguments = [str(tmp_path), str(held.fileno())]
            assert forked.start("child_that_logs", arguments, log=log).wait() == 0, log.read_text()
        finally:
            logging.getLogger().removeHandler(stale)
            held_text.close()
    assert json.loads((tmp_path / "written.json").read_text()) == []
    assert (tmp_path / "held").read_bytes() == b""
    assert log.read_text() == "Said by the child\n", "as a child that configures no logging says it"


def test_code_runs_without_our_packages_and_what_it_says_is_returned(tmp_path: Path) -> None:
    (tmp_path / "next_to_it.txt").write_text("read")
    code = (
        "import sys; print(open('next_to_it.txt').read(), sys.argv[1]); print('warned', file=sys.stderr); "
        "assert not any(name.partition('.')[0] in ('workers', 'apps', 'tests') for name in sys.modules)"
    )
    done = forked.run_code([sys.executable, "-c", code, "7"], cwd=tmp_path)
    assert (done.returncode, done.stdout, done.stderr) == (0, "read 7\n", "warned\n")
    failed = forked.run_code([sys.executable, "-c", "import workers; raise ValueError('no')"], cwd=tmp_path)
    assert (failed.returncode, failed.stdout) == (1, "")
    assert failed.stderr.endswith("ValueError: no\n")
