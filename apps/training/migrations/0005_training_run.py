from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [
        ("training", "0004_dataset_version"),
        ("monitoring", "0003_dataset_version"),
    ]

    operations = [
        migrations.RemoveConstraint(model_name="runevent", name="event_once"),
        migrations.AlterModelTable(name="run", table="training_run"),  # the name it has already
        migrations.RenameModel("Run", "TrainingRun"),
        migrations.AlterModelTable(name="runevent", table="training_run_event"),
        migrations.RenameModel("RunEvent", "TrainingRunEvent"),
        migrations.AlterModelOptions(name="trainingrunevent", options={}),
        migrations.RenameField("trainingrunevent", "run", "training_run"),
        migrations.AlterModelOptions(
            name="trainingrunevent", options={"ordering": ["training_run", "seq"]}
        ),
        migrations.AddConstraint(
            model_name="trainingrunevent",
            constraint=models.UniqueConstraint(fields=["training_run", "seq"], name="event_once"),
        ),
        migrations.RenameField("rewardmodel", "run", "training_run"),
    ]
