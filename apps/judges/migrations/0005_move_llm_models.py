"""What the app `llm` has taken over leaves the state of this one. No table is touched."""

from django.db import migrations


class Migration(migrations.Migration):
    dependencies = [("judges", "0004_llm_connections"), ("metrics", "0003_llm_connections")]

    operations = [
        migrations.SeparateDatabaseAndState(
            state_operations=[
                migrations.DeleteModel(name="Answer"),
                migrations.DeleteModel(name="Spending"),
                migrations.DeleteModel(name="LanguageModel"),
            ],
        ),
    ]
