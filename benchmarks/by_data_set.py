"""A benchmark that measures one data set after another and shows each as soon as it is known."""

import json
import sys
import tempfile
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any

from workers.errors import RewardError


def measure_each(
    names: Iterable[str],
    measure: Callable[[str, Path], dict[str, Any]],
    lines: Callable[[str, dict[str, Any]], Sequence[str]],
    *,
    as_json: bool,
) -> int:
    """measure(name, empty folder). The status to exit with: 2 where one cannot be measured, with the reason."""
    results = {}
    try:
        for name in names:
            with tempfile.TemporaryDirectory(prefix="benchmark-") as scratch:
                results[name] = measure(name, Path(scratch))
            if not as_json:
                print(*lines(name, results[name]), sep="\n", flush=True)
    except RewardError as error:
        sys.stderr.write(f"{error.message}\n")
        return 2
    if as_json:
        print(json.dumps(results))
    return 0
