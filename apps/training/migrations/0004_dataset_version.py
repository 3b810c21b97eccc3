from django.db import migrations


class Migration(migrations.Migration):
    dependencies = [
        ("datasets", "0005_dataset_version"),
        ("training", "0003_parent_of_run"),
    ]

    operations = [
        migrations.RenameField(model_name="run", old_name="snapshot", new_name="dataset_version"),
        migrations.RenameField(model_name="evaluation", old_name="snapshot", new_name="dataset_version"),
    ]
