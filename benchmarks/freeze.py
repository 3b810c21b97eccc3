"""How much CPU does it take to freeze a large campaign, and is the result what it was?

`python -m benchmarks.freeze [--json] [--quick]` prints {judgements, trajectories, cpu, database_cpu, seconds, hash,
files}: the CPU seconds of this process and of its database connection, the content hash of the dataset version, and by
file the SHA-256 of what it holds, uncompressed. It works in a database made for it, like import_scaling.
"""

import argparse
import hashlib
import json
import os
import sys
import time
from pathlib import Path
from typing import Any

import django
import zstandard

from benchmarks.import_scaling import own_database, server
from benchmarks.quality_pages import make_campaign, server_cpu

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "apps.config.settings")

FULL, QUICK = (100_000, 20_000), (480, 80)  # judgements, trajectories


def freeze(project: Any) -> dict[str, Any]:
    from django.db import connection

    from apps.core.storage.artifacts import stage
    from apps.datasets.services import freeze_dataset
    from apps.datasets.version_builder import build_dataset_version

    version = freeze_dataset(project=project, name="all", by=None, filters={}, claimed=True)
    connection.ensure_connection()
    pid = connection.connection.info.backend_pid
    cpu, database_cpu, began = time.process_time(), server_cpu(pid), time.perf_counter()
    build_dataset_version(version)
    taken = {
        "cpu": round(time.process_time() - cpu, 2),
        "database_cpu": round(server_cpu(pid) - database_cpu, 2),
        "seconds": round(time.perf_counter() - began, 2),
    }
    version.refresh_from_db()
    folder = stage(version.artifact)
    files = {path.name: digest(path) for path in sorted(folder.glob("*.zst"))}
    return taken | {"hash": version.content_hash, "files": files}


def digest(path: Path) -> str:
    found = hashlib.sha256()
    with path.open("rb") as raw, zstandard.ZstdDecompressor().stream_reader(raw) as stream:
        while block := stream.read(1 << 20):
            found.update(block)
    return found.hexdigest()


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.freeze", description=__doc__)
    parser.add_argument("--json", action="store_true", help="one JSON object on standard output")
    parser.add_argument("--quick", action="store_true", help="a small campaign: does it run?")
    options = parser.parse_args()
    judgements, trajectories = QUICK if options.quick else FULL
    with server():
        django.setup()
        with own_database("freeze"):
            project = make_campaign(judgements, trajectories=trajectories).project
            found = {"judgements": judgements, "trajectories": trajectories} | freeze(project)
    if options.json:
        print(json.dumps(found))
        return
    print(
        f"{judgements:,} judgements of {trajectories:,} trajectories: {found['cpu']} s of CPU, and"
        f" {found['database_cpu']} s in the database; {found['seconds']} s by the clock",
        file=sys.stdout,
    )


if __name__ == "__main__":
    main()
