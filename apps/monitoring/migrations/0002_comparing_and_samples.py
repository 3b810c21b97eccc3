"""One comparison a turn, of all its splits (what turns compared before is in evaluations; their reasons stay), and
which samples people were asked about."""

import django.db.models.deletion
from django.db import migrations, models


def forget(apps, schema_editor):
    apps.get_model("monitoring", "Comparing").objects.all().delete()


class Migration(migrations.Migration):
    dependencies = [
        ("datasets", "0004_leaks"),
        ("monitoring", "0001_initial"),
    ]

    operations = [
        migrations.RunPython(forget, migrations.RunPython.noop),
        migrations.RemoveConstraint(model_name="comparing", name="comparing_once"),
        migrations.RemoveField(model_name="comparing", name="model"),
        migrations.RemoveField(model_name="comparing", name="snapshot"),
        migrations.AddField(
            model_name="comparing",
            name="snapshots",
            field=models.ManyToManyField(related_name="+", to="datasets.snapshot"),
        ),
        migrations.AlterField(
            model_name="comparing",
            name="turn",
            field=models.OneToOneField(
                on_delete=django.db.models.deletion.CASCADE, related_name="comparing", to="monitoring.turn"
            ),
        ),
        migrations.AlterField(
            model_name="comparing", name="result", field=models.JSONField(default=list)
        ),
        migrations.AddField(
            model_name="followup", name="samples", field=models.JSONField(default=dict)
        ),
    ]
