from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("rubrics", "0003_categories")]

    operations = [
        migrations.AddField("criterion", "point_names", models.JSONField(blank=True, default=dict)),
    ]
