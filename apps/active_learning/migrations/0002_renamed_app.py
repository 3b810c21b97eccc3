"""The tables of the app that was called `acquisition`, under the names of this one. Its rows stay."""

import django.db.models.deletion
from django.db import migrations, models


def rename_content_types(old, new):
    def rename(apps, schema_editor):
        content_types = apps.get_model("contenttypes", "ContentType").objects
        there = content_types.filter(app_label=new).values("model")
        content_types.filter(app_label=old).exclude(model__in=there).update(app_label=new)

    return rename


class Migration(migrations.Migration):
    dependencies = [
        ("active_learning", "0001_initial"),
        ("annotation", "0003_fairness"),
        ("contenttypes", "0002_remove_content_type_name"),
    ]

    operations = [
        migrations.RunPython(
            rename_content_types("acquisition", "active_learning"),
            rename_content_types("active_learning", "acquisition"),
        ),
        migrations.AlterModelTable(name="plan", table=None),
        migrations.AlterModelTable(name="selection", table=None),
        migrations.AlterModelTable(name="reason", table=None),
        # From the one that nothing refers to on: undone in the other order, no reference is to a name of later.
        migrations.RenameModel(old_name="Reason", new_name="SelectionReason"),
        migrations.RenameModel(old_name="Selection", new_name="ItemSelection"),
        migrations.RenameModel(old_name="Plan", new_name="SelectionPlan"),
        migrations.AlterField(
            model_name="selectionplan",
            name="campaign",
            field=models.OneToOneField(
                on_delete=django.db.models.deletion.CASCADE,
                related_name="selection_plan",
                to="annotation.campaign",
            ),
        ),
    ]
