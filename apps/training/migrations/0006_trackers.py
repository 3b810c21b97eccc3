from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("training", "0005_training_run")]

    operations = [
        migrations.AddField(
            model_name="trainingrun",
            name="tracker_options",
            field=models.JSONField(default=dict),
        ),
        migrations.AddField(
            model_name="trainingrun",
            name="tracker_states",
            field=models.JSONField(default=dict),
        ),
    ]
