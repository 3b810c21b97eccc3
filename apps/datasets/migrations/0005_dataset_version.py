"""A `Snapshot` is called `DatasetVersion`. Tables and columns are renamed; no row changes."""

from django.db import migrations, models


class Migration(migrations.Migration):
    # After every migration of another app that refers to the model by its old name.
    dependencies = [
        ("datasets", "0004_leaks"),
        ("monitoring", "0002_comparing_and_samples"),
        ("training", "0003_parent_of_run"),
    ]

    operations = [
        migrations.RemoveConstraint(model_name="snapshot", name="snapshot_version_once"),
        migrations.RenameModel(old_name="Snapshot", new_name="DatasetVersion"),
        migrations.AddConstraint(
            model_name="datasetversion",
            constraint=models.UniqueConstraint(
                fields=["project", "name", "version"], name="dataset_version_unique"
            ),
        ),
        migrations.AlterField(
            model_name="datasetversion",
            name="project",
            field=models.ForeignKey(
                on_delete=models.CASCADE, related_name="dataset_versions", to="accounts.project"
            ),
        ),
        migrations.RenameField(model_name="export", old_name="snapshot", new_name="dataset_version"),
    ]
