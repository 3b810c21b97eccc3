from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("accounts", "0002_invitations")]

    operations = [
        migrations.AddField("project", "annotators_see_models", models.BooleanField(default=False)),
    ]
