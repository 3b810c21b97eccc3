from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("questions", "0001_initial")]

    operations = [migrations.AlterField("trajectoryquestion", "query", models.TextField(blank=True))]
