"""A verdict is a MetricVerdict, and what came before is `previous`."""

from django.db import migrations, models

_WORDS = (("verdict", "verdict"), ("metricverdict", "metric verdict"))


def _rename_permissions(apps, before, after):
    (old_model, old_words), (new_model, new_words) = before, after
    for permission in apps.get_model("auth", "Permission").objects.filter(
        content_type__app_label="metrics", codename__endswith=f"_{old_model}"
    ):
        permission.codename = permission.codename.replace(f"_{old_model}", f"_{new_model}")
        permission.name = permission.name.replace(old_words, new_words)
        permission.save()


def forwards(apps, schema_editor):
    _rename_permissions(apps, *_WORDS)


def backwards(apps, schema_editor):
    _rename_permissions(apps, *_WORDS[::-1])


class Migration(migrations.Migration):
    dependencies = [
        ("auth", "0012_alter_user_first_name_max_length"),
        ("contenttypes", "0002_remove_content_type_name"),
        ("metrics", "0003_llm_connections"),
    ]

    operations = [
        migrations.RenameModel(old_name="Verdict", new_name="MetricVerdict"),
        migrations.RenameField(model_name="induction", old_name="before", new_name="previous"),
        migrations.RenameField(model_name="metric", old_name="before", new_name="previous"),
        migrations.AlterField(
            model_name="induction",
            name="engine",
            field=models.CharField(
                choices=[
                    ("embedded", "Embedded engine (sentence embeddings)"),
                    ("llm", "Language model"),
                ],
                default="embedded",
                max_length=10,
            ),
        ),
        migrations.RunPython(forwards, backwards),
    ]
