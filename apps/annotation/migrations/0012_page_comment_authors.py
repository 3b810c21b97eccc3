"""Copies of page comments belong to the account of their author, not to whoever has the same name."""

from django.db import migrations

CAMPAIGN = "Comments on trajectory pages"
KEY = "name:comment "


def attribute_copies(apps, schema_editor):
    Assignment = apps.get_model("annotation", "Assignment")
    Annotator = apps.get_model("annotation", "Annotator")
    TrajectoryComment = apps.get_model("trajectories", "TrajectoryComment")
    copies = Assignment.objects.filter(
        item__campaign__name=CAMPAIGN, item__key__startswith=KEY, annotator__user=None, is_adjudication=False
    ).order_by("-pk")  # of one comment under two names, the newer copy stays
    for pk, item, key, project in copies.values_list(
        "pk", "item_id", "item__key", "item__campaign__project_id"
    ).iterator(chunk_size=500):
        number = key.removeprefix(KEY)
        if not (number.isascii() and number.isdecimal() and len(number) < 19):
            continue
        comment = TrajectoryComment.objects.filter(pk=int(number), project_id=project).exclude(author=None)
        author = comment.values_list("author_id", "author__email").first()
        if author is None:
            continue
        annotator, _ = Annotator.objects.get_or_create(
            project_id=project, user_id=author[0], defaults={"name": author[1]}
        )
        copy = Assignment.objects.filter(pk=pk)
        if Assignment.objects.filter(item=item, annotator=annotator, is_adjudication=False).exists():
            copy.delete()
        else:
            copy.update(annotator=annotator)


class Migration(migrations.Migration):
    dependencies = [
        ("annotation", "0011_project_numbers"),
        ("trajectories", "0012_trajectory_comments"),
    ]

    operations = [migrations.RunPython(attribute_copies, migrations.RunPython.noop)]
