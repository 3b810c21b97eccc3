from hashlib import sha256
from itertools import groupby
from typing import Any

from django.db import migrations

_BATCH = 2000  # items


def renew_keys(apps: Any, schema_editor: Any) -> None:
    """Keys that were made from contents, of which some are other ones since speakers are content."""
    place = apps.get_model("annotation", "ItemTrajectory")
    with_speakers = place.objects.filter(trajectory__earlier_content_hash__isnull=False)
    items = list(with_speakers.order_by("item").values_list("item", flat=True).distinct())
    for start in range(0, len(items), _BATCH):
        _renew(apps, items[start : start + _BATCH])


def _renew(apps: Any, items: list[int]) -> None:
    item_model = apps.get_model("annotation", "Item")
    rows = item_model.objects.select_related("task").in_bulk(items)
    places = apps.get_model("annotation", "ItemTrajectory").objects.filter(item__in=items)
    hashes = ("item", "trajectory__content_hash", "trajectory__earlier_content_hash")
    changed = []
    for key, group in groupby(places.order_by("item").values_list(*hashes), lambda found: found[0]):
        row, found = rows[key], list(group)
        before = [earlier or content for _, content, earlier in found]
        if row.key == _key(row.task.external_id, before):
            row.key = _key(row.task.external_id, [content for _, content, _ in found])
            changed.append(row)
    item_model.objects.bulk_update(changed, ["key"], batch_size=500)


def _key(task: str, hashes: list[str]) -> str:
    """As services.items.item_key of an item without a name."""
    return sha256("\n".join([task, *sorted(hashes)]).encode()).hexdigest()


class Migration(migrations.Migration):
    """The same annotations imported again find their items."""

    dependencies = [("annotation", "0005_glossary_names"), ("trajectories", "0008_move_speakers")]

    operations = [migrations.RunPython(renew_keys, migrations.RunPython.noop)]
