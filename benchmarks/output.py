"""What benchmarks do with their result, as their arguments `--json` and `--out` say."""

import json
from argparse import Namespace
from collections.abc import Iterable
from typing import Any


def put_out(found: dict[str, Any], lines: Iterable[str], arguments: Namespace) -> None:
    """To the file of `--out`, and to standard output: the JSON object with `--json`, else the lines."""
    if arguments.out:
        arguments.out.write_text(json.dumps(found, indent=2) + "\n")
    print(json.dumps(found) if arguments.json else "\n".join(lines))
