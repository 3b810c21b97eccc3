from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("datasets", "0006_export_left_out")]

    operations = [
        migrations.AlterField(
            model_name="export", name="format", field=models.CharField(max_length=40)
        ),
    ]
