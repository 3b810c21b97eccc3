"""How long do the quality and reliability pages of a large campaign take, the first time and from then on?

`python -m benchmarks.quality_pages [--json] [--quick]` prints {judgements, quality, reliability, disputed}, each with
{first_cpu, first_seconds, again_cpu, again_seconds, changed_seconds}: the first request of a page, one of a page that
nothing changed since, and one after one more judgement. CPU is that of this process and of its database connection
(utime and stime of the server process). Medians of repetitions. It works in a database made for it, like
import_scaling.
"""

import argparse
import json
import os
import statistics
import sys
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import django

from benchmarks.feedback_export import TASKS
from benchmarks.import_scaling import file_of, own_database, server

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "apps.config.settings")

FULL, QUICK = 57_600, 480
PEOPLE, EACH = 8, 4  # annotators, and how many of them judge an item
# Item i is judged by the annotators i to i + EACH - 1, in turns. The better side is by the item; an annotator errs in
# 10 to 30 % of the answers, by number, and says tie or both bad in 8 %.
ROWS = """
    WITH ranked AS (
        SELECT id, task_id, row_number() OVER (PARTITION BY task_id ORDER BY id) AS place
        FROM trajectories_trajectory WHERE project_id = %(project)s
    ), pairs AS (
        SELECT row_number() OVER (ORDER BY a.place, b.place, task_id) - 1 AS n, task_id, a.id AS a, b.id AS b,
            count(*) OVER () AS total
        FROM ranked a JOIN ranked b USING (task_id) WHERE a.place < b.place
    ), items AS (
        INSERT INTO annotation_item (campaign_id, task_id, key, purpose, explanation, in_pilot, priority, random_key,
            overlap, is_exclusive, claimed_count, completed_count, created_at)
        SELECT %(campaign)s, task_id, 'name:' || i, 'work', '', false, 0, i, %(each)s, false, %(each)s, %(each)s, now()
        FROM generate_series(1, %(items)s) i JOIN pairs ON pairs.n = i %% total
        RETURNING id, random_key AS number
    ), places AS (
        INSERT INTO annotation_itemtrajectory (item_id, trajectory_id, position)
        SELECT items.id, unnest(ARRAY[a, b]), unnest(ARRAY[0, 1]) FROM items JOIN pairs ON n = number %% total
    ), people AS (
        SELECT id, row_number() OVER (ORDER BY id) - 1 AS n FROM annotation_annotator WHERE project_id = %(project)s
    ), assignments AS (
        INSERT INTO annotation_assignment (item_id, annotator_id, state, is_adjudication, is_reserved, swapped, draft,
            active_seconds, reason, created_at)
        SELECT items.id, people.id, 'submitted', false, false, hashint8(items.id + 7 * people.n) %% 2 = 0, '{}',
            5 + people.n, '', now()
        FROM items JOIN people ON (people.n - items.number + %(people)s * %(items)s) %% %(people)s < %(each)s
        RETURNING id, item_id, annotator_id, active_seconds
    ), annotations AS (
        INSERT INTO annotation_annotation (assignment_id, revision, idempotency_key, origin, campaign_version,
            active_seconds, suggestion, is_surplus, created_at)
        SELECT id, 1, gen_random_uuid(), 'person', 1, active_seconds + id %% 40, '', false, now() FROM assignments
        RETURNING id, assignment_id
    )
    INSERT INTO annotation_preference (annotation_id, choice, strength)
    SELECT annotations.id,
        CASE WHEN dice < 4 THEN 'tie' WHEN dice < 8 THEN 'both_bad'
            WHEN (dice < 18 + 3 * people.n) = (hashint8(item_id) %% 2 = 0) THEN 'a' ELSE 'b' END,
        1 + abs(dice) %% 3
    FROM annotations JOIN assignments ON assignments.id = assignment_id
    JOIN people ON people.id = annotator_id
    CROSS JOIN LATERAL (SELECT abs(hashint8(1000003 * item_id + people.n)) %% 100 AS dice) thrown
"""


def make_campaign(judgements: int, *, trajectories: int = 2 * TASKS) -> Any:
    from django.db import connection

    from apps.accounts.models import Project
    from apps.annotation.models import Annotator
    from apps.annotation.services import create_campaign
    from apps.trajectories.services import import_trajectories

    project = Project.objects.create(slug="quality", name=f"{judgements} judgements")
    import_trajectories(project=project, stream=file_of(trajectories, project.slug), by=None)
    Annotator.objects.bulk_create(Annotator(project=project, name=f"annotator {n}") for n in range(PEOPLE))
    campaign = create_campaign(project=project, name="All", feedback_types=["pairwise"], overlap=EACH)
    values = {
        "project": project.pk,
        "campaign": campaign.pk,
        "items": judgements // EACH,
        "each": EACH,
        "people": PEOPLE,
    }
    with connection.cursor() as cursor:
        cursor.execute(ROWS, values)
        cursor.execute("VACUUM ANALYZE")
    return campaign


def server_cpu(pid: int) -> float:
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def timed(call: Callable[[], Any]) -> tuple[float, float]:
    """Seconds by the clock, and of CPU of this process and its server process."""
    from django.db import connection

    connection.ensure_connection()
    pid = connection.connection.info.backend_pid
    before, began = time.process_time() + server_cpu(pid), time.perf_counter()
    call()
    return time.perf_counter() - began, time.process_time() + server_cpu(pid) - before


def add_judgement(campaign: Any) -> None:
    """One more judgement of an item that was judged, by a new annotator."""
    from apps.annotation.models import Annotation, Annotator, Assignment, Preference

    person, _ = Annotator.objects.get_or_create(project=campaign.project, user=None, name="late annotator")
    item = campaign.items.exclude(assignments__annotator=person).order_by("pk").first()
    assignment = Assignment.objects.create(item=item, annotator=person, state="submitted")
    annotation = Annotation.objects.create(assignment=assignment, active_seconds=7)
    Preference.objects.create(annotation=annotation, choice="a")


def measure(judgements: int, repeats: int) -> dict[str, Any]:
    from django.test import Client
    from django.urls import reverse

    from apps.accounts.models import Membership, Role, User

    campaign = make_campaign(judgements)
    user = User.objects.create(email="reviewer@example.org")
    Membership.objects.create(project=campaign.project, user=user, role=Role.REVIEWER)
    client = Client(headers={"host": "localhost"})
    client.force_login(user)
    names = {
        "quality": reverse("annotation:campaign-quality", args=["quality", campaign.pk]),
        "reliability": reverse("annotation:campaign-reliability", args=["quality", campaign.pk]),
        "disputed": reverse("annotation:item-list", args=["quality", campaign.pk]) + "?disputed=1",
    }

    def visit(url: str) -> None:
        page = client.get(url)
        assert page.status_code == 200, page.status_code

    visit(reverse("annotation:campaign-list", args=["quality"]))  # templates, imports
    found: dict[str, Any] = {"judgements": judgements}
    for name, url in names.items():
        add_judgement(campaign)
        first = timed(partial(visit, url))
        again = [timed(partial(visit, url)) for _ in range(repeats)]
        changed = []
        for _ in range(repeats):
            add_judgement(campaign)
            changed.append(timed(partial(visit, url)))
        found[name] = {
            "first_seconds": round(first[0], 3),
            "first_cpu": round(first[1], 3),
            "again_seconds": round(statistics.median(each[0] for each in again), 3),
            "again_cpu": round(statistics.median(each[1] for each in again), 3),
            "changed_seconds": round(statistics.median(each[0] for each in changed), 3),
            "changed_cpu": round(statistics.median(each[1] for each in changed), 3),
        }
    return found


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.quality_pages", description=__doc__)
    parser.add_argument("--json", action="store_true", help="one JSON object on standard output")
    parser.add_argument("--quick", action="store_true", help="a small campaign: does it run?")
    options = parser.parse_args()
    with server():
        django.setup()
        with own_database("quality_pages"):
            found = measure(*((QUICK, 1) if options.quick else (FULL, 3)))
    if options.json:
        print(json.dumps(found))
        return
    print(f"{found['judgements']:,} judgements; seconds (CPU)")
    for name in ("quality", "reliability", "disputed"):
        figures = found[name]
        print(
            f"{name:>12}: first {figures['first_seconds']:.2f} ({figures['first_cpu']:.2f}),"
            f" unchanged {figures['again_seconds']:.2f} ({figures['again_cpu']:.2f}),"
            f" one more judgement {figures['changed_seconds']:.2f} ({figures['changed_cpu']:.2f})",
            file=sys.stdout,
        )


if __name__ == "__main__":
    main()
