"""Does an export hold everything, and no more memory the more there is, while others write?

`python -m benchmarks.feedback_export [--json] [--quick]` prints {judgements, lines, missing, doubled, same_hash,
peak_mb, peak_ratio, seconds}: `export_feedback` runs as a process of its own on a project of each size, while
judgements are imported into it all the time. What was there when the export began has to be in it once, as said:
counted, and compared by an exclusive or of the SHA-256 of (item, annotator, choice). Peaks are of the exporting
process; the ratio is of the larger project to the smaller. It works in a database of its own, like queue_scaling.
"""

import argparse
import hashlib
import io
import json
import os
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import django

from benchmarks.import_scaling import file_of, own_database, server

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "apps.config.settings")

FULL, QUICK = (50_000, 500_000), (50, 250)
EACH = 5  # annotators of an item
TASKS = 100
# Five judgements an item, of the comparisons of TASKS tasks in turns.
ROWS = """
    WITH pairs AS (
        SELECT row_number() OVER (ORDER BY task_id) - 1 AS n, task_id, min(id) AS a, max(id) AS b
        FROM trajectories_trajectory WHERE project_id = %(project)s GROUP BY task_id
    ), items AS (
        INSERT INTO annotation_item (campaign_id, task_id, key, purpose, explanation, in_pilot, priority, random_key,
            overlap, is_exclusive, claimed_count, completed_count, created_at)
        SELECT %(campaign)s, task_id, 'name:' || i, 'work', '', false, 0, i, %(each)s, false, %(each)s, %(each)s, now()
        FROM generate_series(1, %(items)s) i JOIN pairs ON pairs.n = i %% (SELECT count(*) FROM pairs)
        RETURNING id, task_id
    ), places AS (
        INSERT INTO annotation_itemtrajectory (item_id, trajectory_id, position)
        SELECT items.id, unnest(ARRAY[a, b]), unnest(ARRAY[0, 1]) FROM items JOIN pairs USING (task_id)
    ), assignments AS (
        INSERT INTO annotation_assignment (item_id, annotator_id, state, is_adjudication, is_reserved, swapped, draft,
            active_seconds, reason, created_at)
        SELECT items.id, people.id, 'submitted', false, false, false, '{}', 7, '', now()
        FROM items CROSS JOIN annotation_annotator people WHERE people.project_id = %(project)s
        RETURNING id
    ), annotations AS (
        INSERT INTO annotation_annotation (assignment_id, revision, idempotency_key, origin, campaign_version,
            active_seconds, suggestion, is_surplus, created_at)
        SELECT id, 1, gen_random_uuid(), 'person', 1, 7, '', false, now() FROM assignments
        RETURNING id
    )
    INSERT INTO annotation_preference (annotation_id, choice, strength)
    SELECT id, CASE WHEN id %% 3 = 0 THEN 'b' ELSE 'a' END, 2 FROM annotations
"""
WHAT_IS_THERE = """
    SELECT substring(item.key from 6), annotator.name, preference.choice
    FROM annotation_preference preference
    JOIN annotation_annotation annotation ON annotation.id = preference.annotation_id
    JOIN annotation_assignment assignment ON assignment.id = annotation.assignment_id
    JOIN annotation_item item ON item.id = assignment.item_id
    JOIN annotation_annotator annotator ON annotator.id = assignment.annotator_id
    WHERE annotator.project_id = %s
"""


def make_project(judgements: int) -> Any:
    from django.db import connection

    from apps.accounts.models import Project
    from apps.annotation.models import Annotator
    from apps.annotation.services import create_campaign
    from apps.trajectories.services import import_trajectories

    project = Project.objects.create(slug=f"of-{judgements}", name=f"{judgements} judgements")
    import_trajectories(project=project, stream=file_of(2 * TASKS, project.slug), by=None)
    Annotator.objects.bulk_create(Annotator(project=project, name=f"annotator {n}") for n in range(EACH))
    campaign = create_campaign(project=project, name="All", feedback_types=["pairwise"], overlap=EACH)
    of = {
        "project": project.pk,
        "campaign": campaign.pk,
        "items": judgements // EACH,
        "each": EACH,
    }
    with connection.cursor() as cursor:
        cursor.execute(ROWS, of)
        cursor.execute("ANALYZE")
    return project


def digest(said: tuple[str, str, str]) -> int:
    return int.from_bytes(hashlib.sha256("\n".join(said).encode()).digest())


def there(project: Any) -> Iterator[tuple[str, str, str]]:
    """(item, annotator, choice) of all that is judged."""
    from django.db import connection, transaction

    with transaction.atomic(), connection.connection.cursor("there") as cursor:
        cursor.execute(WHAT_IS_THERE, [project.pk])
        yield from cursor


@contextmanager
def others_write(project: Any) -> Iterator[list[int]]:
    """Judgements are imported all the while; how many, when it is over."""
    from django.db import connections

    from apps.annotation.feedback.services import import_feedback

    stop, written = threading.Event(), [0]

    def write() -> None:
        number = 0
        try:
            while not stop.wait(0.05):
                number += 1
                record = {
                    "task": {"id": f"new-{number}"},
                    "a": {"prompt": "Hello?", "response": "Gladly."},
                    "b": {"prompt": "Hello?", "response": "No."},
                    "choice": "a",
                    "annotator": "writer",
                }
                stream = io.BytesIO(json.dumps(record).encode())
                written[0] += import_feedback(project=project, stream=stream, format="pairs", by=None).created
        finally:
            connections.close_all()

    thread = threading.Thread(target=write)
    thread.start()
    try:
        yield written
    finally:
        stop.set()
        thread.join()


def export(project: Any, out: Path) -> tuple[float, float]:
    """Seconds and the peak of resident memory in MB of `export_feedback`."""
    from django.db import connection

    url = os.environ["DATABASE_URL"].rpartition("/")[0] + "/" + str(connection.settings_dict["NAME"])
    command = [sys.executable, "manage.py", "export_feedback", project.slug, "--out", str(out)]
    began = time.perf_counter()
    process = subprocess.Popen(command, env={**os.environ, "DATABASE_URL": url}, stdout=subprocess.DEVNULL)
    _, status, usage = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode:
        raise RuntimeError(f"export_feedback ended with {process.returncode}")
    return time.perf_counter() - began, usage.ru_maxrss / 1024


def compare(project: Any, out: Path) -> dict[str, int]:
    """What is in the file of the judgements that were there: lines, missing ones, doubled ones, and their hash."""
    lines, doubled, seen, hashed = 0, 0, set(), 0
    with out.open(encoding="utf-8") as stream:
        for line in stream:
            record = json.loads(line)
            if record["annotator"] == "writer":
                continue
            lines += 1
            said = digest((record["item"], record["annotator"], record["choice"]))
            doubled += said in seen
            seen.add(said)
            hashed ^= said
    expected = 0
    wanted = 0
    for said_there in there(project):
        if said_there[1] != "writer":
            expected ^= digest(said_there)
            wanted += 1
    return {
        "lines": lines,
        "missing": wanted - len(seen),
        "doubled": doubled,
        "same_hash": hashed == expected,
    }


def measure(sizes: tuple[int, int]) -> dict[str, Any]:
    found: list[dict[str, Any]] = []
    for size in sizes:
        project = make_project(size)
        with tempfile.TemporaryDirectory() as folder, others_write(project) as written:
            out = Path(folder) / "feedback.jsonl"
            seconds, peak = export(project, out)
            found.append(
                {"judgements": size, **compare(project, out), "written_meanwhile": written[0]}
                | {"seconds": round(seconds, 1), "peak_mb": round(peak, 1)}
            )
    return {"of": found, "peak_ratio": round(found[1]["peak_mb"] / found[0]["peak_mb"], 2)}


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.feedback_export", description=__doc__)
    parser.add_argument("--json", action="store_true")
    parser.add_argument("--quick", action="store_true", help="small projects: does it run?")
    asked = parser.parse_args()
    with server():
        django.setup()
        with own_database("feedback_export"):
            result = measure(QUICK if asked.quick else FULL)
    print(json.dumps(result) if asked.json else json.dumps(result, indent=2))
    whole = all(
        export["missing"] == export["doubled"] == 0 and export["same_hash"] for export in result["of"]
    )
    return 0 if whole else 1


if __name__ == "__main__":
    sys.exit(main())
