"""Does handing out and submitting an item cost the same in a campaign of a million items as in one of ten thousand?

`python -m benchmarks.queue_scaling [--json] [--quick]` prints {items, next_p95_ms, submit_p95_ms, ...}: 200 annotators,
a few at once, judge items of both campaigns in turns through the pages themselves (Django's test client, so that the
time of the network and of a server is not in it). Ratios of the same run are compared; times are for reading.
Afterwards it checks whether any item was given to more people than its overlap, to one person twice, or lost an
annotation.
It works in a database of its own on the server of DATABASE_URL; without one, on an embedded PostgreSQL.
"""

import argparse
import json
import os
import random
import re
import sys
import time
import uuid
from collections import defaultdict
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from typing import Any

import django

from benchmarks.import_scaling import file_of, own_database, server

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "apps.config.settings")

OVERLAP = 2
FULL = {"sizes": (10_000, 1_000_000), "annotators": 200, "rounds": 10, "at_once": 8}
QUICK = {"sizes": (200, 2_000), "annotators": 8, "rounds": 3, "at_once": 4}
ITEMS = """
    INSERT INTO annotation_item (campaign_id, task_id, key, purpose, explanation, in_pilot, priority, random_key,
        overlap, is_exclusive, claimed_count, completed_count, created_at)
    SELECT %s, %s, 'name:' || n, 'work', '', false, 0, floor(random() * 4e18)::bigint, %s, false, 0, 0, now()
    FROM generate_series(1, %s) n
"""
PLACES = """
    INSERT INTO annotation_itemtrajectory (item_id, trajectory_id, position)
    SELECT id, unnest(%s::bigint[]), unnest(ARRAY[0, 1]) FROM annotation_item WHERE campaign_id = %s
"""


@dataclass
class Times:
    """Milliseconds by size of the campaign; keys of what was acknowledged."""

    next: dict[int, list[float]] = field(default_factory=lambda: defaultdict(list))
    submit: dict[int, list[float]] = field(default_factory=lambda: defaultdict(list))
    keys: list[uuid.UUID] = field(default_factory=list)


def make_campaigns(sizes: tuple[int, ...]) -> tuple[Any, dict[int, Any]]:
    from django.db import connection

    from apps.accounts.models import Project
    from apps.annotation.services import create_campaign
    from apps.trajectories.models import Trajectory
    from apps.trajectories.services import import_trajectories

    project = Project.objects.create(slug="bench", name="Bench")
    import_trajectories(project=project, stream=file_of(4, "x"), by=None)
    runs = list(Trajectory.objects.filter(task__external_id="x-0").order_by("pk")[:2])
    campaigns = {}
    for size in sizes:
        campaign = create_campaign(
            project=project, name=f"{size} items", feedback_types=["pairwise"], overlap=OVERLAP
        )
        with connection.cursor() as cursor:
            cursor.execute(ITEMS, [campaign.pk, runs[0].task_id, OVERLAP, size])
            cursor.execute(PLACES, [[run.pk for run in runs], campaign.pk])
        campaigns[size] = campaign
    with connection.cursor() as cursor:
        cursor.execute("ANALYZE annotation_item, annotation_itemtrajectory")
    return project, campaigns


def make_people(project: Any, count: int) -> list[Any]:
    """A logged-in browser each."""
    from django.test import Client

    from apps.accounts.models import Membership, Role, User

    clients = []
    for number in range(count):
        user = User.objects.create(email=f"a{number}@example.org")
        Membership.objects.create(project=project, user=user, role=Role.ANNOTATOR)
        client = Client()
        client.force_login(user)
        clients.append(client)
    return clients


def judge(client: Any, size: int, campaign: Any, times: Times) -> None:
    """One item from the page to its acknowledgement."""
    began = time.perf_counter()
    page = client.get(f"/p/bench/campaigns/{campaign.pk}/work/")
    times.next[size].append(1000 * (time.perf_counter() - began))
    assert page.status_code == 200, page.status_code
    match = re.search(rb'data-assignment="(\d+)"', page.content)
    assert match is not None, "nothing was handed out while items are left"
    key = uuid.uuid4()
    choice = random.choice(("left-2", "right-1", "tie"))
    began = time.perf_counter()
    answer = client.post(
        f"/p/bench/campaigns/items/{int(match[1])}/submit/", {"idempotency_key": str(key), "choice": choice}
    )
    times.submit[size].append(1000 * (time.perf_counter() - began))
    assert answer.status_code == 302, answer.status_code
    times.keys.append(key)


def work(clients: list[Any], campaigns: dict[int, Any], rounds: int, at_once: int) -> Times:
    """Everyone judges one item of each campaign a round; the order of the campaigns turns with the rounds."""
    from django.db import connections

    times = Times()

    def take_turns(mine: list[Any]) -> None:
        try:
            for number in range(rounds):
                sizes = list(campaigns)[:: 1 if number % 2 else -1]
                for size in sizes:
                    for client in mine:
                        judge(client, size, campaigns[size], times)
        finally:
            connections.close_all()

    with ThreadPoolExecutor(at_once) as pool:
        for done in [pool.submit(take_turns, clients[start::at_once]) for start in range(at_once)]:
            done.result()
    return times


def check(keys: list[uuid.UUID]) -> list[str]:
    """What was promised and not kept. keys: of all annotations that were acknowledged."""
    from django.db.models import Count, F

    from apps.annotation.models import Annotation, Assignment, Item

    wrong = []
    kept = set(Annotation.objects.values_list("idempotency_key", flat=True))
    if kept != set(keys):
        wrong.append(
            f"{len(set(keys) - kept)} acknowledged annotations are lost, {len(kept - set(keys))} are new"
        )
    if over := Item.objects.filter(claimed_count__gt=F("overlap")).count():
        wrong.append(f"{over} items were given to more people than they want")
    pairs = Assignment.objects.values("item", "annotator").annotate(n=Count("pk"))
    if pairs.filter(n__gt=1).exists():
        wrong.append("an item was given to one person twice")
    counted = Assignment.objects.filter(state="submitted").values("item").annotate(n=Count("pk"))
    if counted.exclude(n=F("item__completed_count")).exists():
        wrong.append("an item's count differs from its judgements")
    return wrong


def p95(values: list[float]) -> float:
    return sorted(values)[int(0.95 * len(values))]


def measure(sizes: tuple[int, ...], annotators: int, rounds: int, at_once: int) -> dict[str, Any]:
    from django.db import connections
    from django.test.utils import setup_test_environment

    setup_test_environment()
    began = time.perf_counter()
    project, campaigns = make_campaigns(sizes)
    print(f"{sum(sizes)} items made in {time.perf_counter() - began:.0f} s", file=sys.stderr, flush=True)
    clients = make_people(project, annotators)
    connections.close_all()
    warm = work(clients[:at_once], campaigns, 1, at_once)  # templates and caches
    times = work(clients, campaigns, rounds, at_once)
    next_, submit = ([p95(found[size]) for size in sizes] for found in (times.next, times.submit))
    return {
        "items": list(sizes),
        "judgements": len(times.keys),
        "next_p95_ms": [round(value, 1) for value in next_],
        "submit_p95_ms": [round(value, 1) for value in submit],
        "next_ratio": round(next_[-1] / next_[0], 2),
        "submit_ratio": round(submit[-1] / submit[0], 2),
        "wrong": check(warm.keys + times.keys),
    }


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.queue_scaling", description=__doc__)
    parser.add_argument("--json", action="store_true")
    parser.add_argument("--quick", action="store_true", help="small campaigns: does it run?")
    asked = parser.parse_args()
    with server():
        django.setup()
        with own_database("queue_scaling"):
            result = measure(**(QUICK if asked.quick else FULL))  # type: ignore[arg-type]
    print(json.dumps(result) if asked.json else json.dumps(result, indent=2))
    return 1 if result["wrong"] else 0


if __name__ == "__main__":
    sys.exit(main())
