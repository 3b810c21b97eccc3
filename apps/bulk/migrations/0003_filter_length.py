from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("bulk", "0002_induction")]

    operations = [migrations.AlterField("bulkjob", "query", models.TextField(blank=True))]
