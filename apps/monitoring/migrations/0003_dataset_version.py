from django.db import migrations


class Migration(migrations.Migration):
    dependencies = [
        ("datasets", "0005_dataset_version"),
        ("monitoring", "0002_comparing_and_samples"),
    ]

    operations = [
        migrations.RenameField(model_name="turn", old_name="snapshot", new_name="dataset_version"),
        migrations.RenameField(
            model_name="comparing", old_name="snapshots", new_name="dataset_versions"
        ),
    ]
