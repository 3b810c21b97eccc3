"""Tables, columns, content types and permissions of what came from the app `judges` get this app's names."""

from django.db import migrations, models

# (app, model, verbose name) before and after
_MOVED = (
    (("judges", "languagemodel", "language model"), ("llm", "llmconnection", "llm connection")),
    (("judges", "spending", "spending"), ("llm", "spending", "spending")),
    (("judges", "answer", "answer"), ("llm", "cachedcompletion", "cached completion")),
)


def _move(apps, source, target):
    content_types = apps.get_model("contenttypes", "ContentType").objects
    (old_app, old_model, old_words), (new_app, new_model, new_words) = source, target
    moved = content_types.filter(app_label=old_app, model=old_model).first()
    if moved is None:  # a new installation: they are created after all migrations
        return
    content_types.filter(app_label=new_app, model=new_model).delete()
    moved.app_label, moved.model = new_app, new_model
    moved.save()
    for permission in apps.get_model("auth", "Permission").objects.filter(content_type=moved):
        permission.codename = permission.codename.replace(f"_{old_model}", f"_{new_model}")
        permission.name = permission.name.replace(old_words, new_words)
        permission.save()


def forwards(apps, schema_editor):
    for before, after in _MOVED:
        _move(apps, before, after)


def backwards(apps, schema_editor):
    for before, after in _MOVED:
        _move(apps, after, before)


class Migration(migrations.Migration):
    dependencies = [
        ("auth", "0012_alter_user_first_name_max_length"),
        ("contenttypes", "0002_remove_content_type_name"),
        ("judges", "0005_move_llm_models"),
        ("llm", "0001_initial"),
    ]

    operations = [
        migrations.AlterModelTable(name="llmconnection", table=None),
        migrations.AlterModelTable(name="spending", table=None),
        migrations.AlterModelTable(name="cachedcompletion", table=None),
        migrations.RemoveConstraint(model_name="spending", name="spending_once"),
        migrations.RemoveConstraint(model_name="cachedcompletion", name="answer_once"),
        migrations.RenameField(model_name="spending", old_name="language_model", new_name="llm_connection"),
        migrations.RenameField(
            model_name="cachedcompletion", old_name="language_model", new_name="llm_connection"
        ),
        migrations.RenameField(
            model_name="cachedcompletion", old_name="other", new_name="other_trajectory"
        ),
        migrations.AddConstraint(
            model_name="spending",
            constraint=models.UniqueConstraint(
                fields=("llm_connection", "day", "purpose"), name="spending_once"
            ),
        ),
        migrations.AddConstraint(
            model_name="cachedcompletion",
            constraint=models.UniqueConstraint(fields=("llm_connection", "key"), name="answer_once"),
        ),
        migrations.RunPython(forwards, backwards),
    ]
