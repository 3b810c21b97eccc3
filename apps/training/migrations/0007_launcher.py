from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("training", "0006_trackers")]

    operations = [
        migrations.AddField(
            model_name="trainingrun",
            name="launcher",
            field=models.CharField(default="local", max_length=20),
        ),
        migrations.AddField(
            model_name="trainingrun",
            name="launch_options",
            field=models.JSONField(default=dict),
        ),
        migrations.AddField(
            model_name="trainingrun",
            name="launched",
            field=models.JSONField(default=dict),
        ),
    ]
