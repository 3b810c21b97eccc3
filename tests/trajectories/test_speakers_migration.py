"""Rows that kept their speakers in `extra` become what an import of the same file makes."""

import io
import json
from importlib import import_module
from typing import Any

from django.apps import apps
from django.db import connection

from apps.accounts.models import Project
from apps.annotation.models import Campaign, Item
from apps.annotation.services import ItemSpec, add_items, item_key
from apps.trajectories import services
from apps.trajectories.models import Step, Trajectory
from apps.trajectories.selectors import keys_by_content_hash, load_trajectories, stored_keys
from tests.trajectories.conftest import lines, record
from tests.trajectories.test_speakers import WHO, conversation
from workers import schema

migration = import_module("apps.trajectories.migrations.0008_move_speakers")
item_migration = import_module("apps.annotation.migrations.0006_item_keys_of_speakers")


def state() -> list[tuple[Any, ...]]:
    steps = Step.objects.order_by("trajectory", "index").values_list("speaker", "extra")
    rows = Trajectory.objects.order_by("pk").values_list("pk", "content_hash", "identity")
    return [*rows, *((speaker, json.dumps(extra, sort_keys=True)) for speaker, extra in steps)]


def put(project: Project, *files: bytes) -> tuple[int, int]:
    """Import files; how many trajectories are new, and how many are there."""
    results = [
        services.import_trajectories(project=project, stream=io.BytesIO(file), by=None) for file in files
    ]
    return sum(result.created for result in results), sum(result.duplicates for result in results)


def put_back() -> None:
    """Rows as the version before wrote them."""
    for row in Trajectory.objects.select_related("task"):
        steps = list(row.steps.order_by("index"))
        for step in steps:
            if step.speaker is not None and row.source_format == "who-and-when":
                step.extra = {"speaker": step.speaker} | step.extra
            elif step.speaker is not None:
                step.extra |= {"message": step.extra.get("message", {}) | {"name": step.speaker}}
            step.speaker = None
            step.save()
        loaded = load_trajectories([row.pk])[row.pk]
        earlier = schema.Trajectory(
            task=schema.Task(id=row.task.external_id), steps=loaded.steps
        ).content_hash
        Trajectory.objects.filter(pk=row.pk).update(content_hash=earlier, identity=f"before {row.pk}")


def test_the_migration_makes_what_an_import_makes(project: Project) -> None:
    other = conversation(2)
    other[1]["name"], other[2]["name"] = other[2]["name"], other[1]["name"]
    data = lines(
        record(1, messages=conversation(3), id="r"),
        record(1, messages=conversation(2)),
        record(1, messages=other),
        record(1, messages=conversation(2)),  # another sample
        record(2),
    )
    put(project, data, lines(WHO))
    made = state()
    put_back()
    before = dict(Trajectory.objects.values_list("pk", "content_hash"))
    assert not Step.objects.exclude(speaker=None)
    assert state() != made
    Trajectory.objects.filter(task__external_id="task-2").update(identity=made[4][2])  # it has no speakers
    migration.move_speakers(apps, None)
    assert state() == made
    assert put(project, data, lines(WHO)) == (0, 6)
    assert set(keys_by_content_hash(project, before.values())) == set(before.values())
    first = min(before)
    assert stored_keys(project, [(before[first], first)]) == {(before[first], first): first}


def test_items_without_a_name_are_found_again(project: Project) -> None:
    data = lines(record(1, messages=conversation(2)), record(1, messages=conversation(3)))
    put(project, data)
    rows = list(Trajectory.objects.order_by("pk"))
    campaign = Campaign.objects.create(project=project, name="c", feedback_types=["pairwise"])
    keys = {}
    for name in (None, "named"):
        add_items(campaign=campaign, items=[ItemSpec(trajectories=rows, name=name)])
        keys[name] = Item.objects.latest("pk").key
    put_back()
    hashes = list(Trajectory.objects.values_list("content_hash", flat=True))
    Item.objects.filter(key=keys[None]).update(key=item_key(None, "task-1", hashes))
    migration.move_speakers(apps, None)
    item_migration.renew_keys(apps, None)
    assert set(Item.objects.values_list("key", flat=True)) == set(keys.values())


def test_names_of_tools_and_of_results_stay(project: Project) -> None:
    messages = [
        {"role": "user", "content": "Look."},
        {"role": "assistant", "content": None, "tool_calls": [{"id": "c", "function": {"name": "look"}}]},
        {"role": "tool", "tool_call_id": "c", "name": "look", "content": "speaker"},
    ]
    put(project, lines(record(1, messages=messages)))
    made = state()
    migration.move_speakers(apps, None)
    assert state() == made
    with connection.cursor() as cursor:
        cursor.execute("SELECT count(*) FROM trajectories_trajectory WHERE earlier_content_hash IS NOT NULL")
        assert cursor.fetchone() == (0,)
