"""Judgings are judge runs, and what they hold are judge results."""

import django.db.models.deletion
from django.db import migrations, models

# model and verbose name before and after
_RENAMED = (
    (("judging", "judging"), ("judgerun", "judge run")),
    (("judged", "judged"), ("judgeresult", "judge result")),
)


def _rename_permissions(apps, before, after):
    (old_model, old_words), (new_model, new_words) = before, after
    for permission in apps.get_model("auth", "Permission").objects.filter(
        content_type__app_label="judges", codename__endswith=f"_{old_model}"
    ):
        permission.codename = permission.codename.replace(f"_{old_model}", f"_{new_model}")
        permission.name = permission.name.replace(old_words, new_words)
        permission.save()


def forwards(apps, schema_editor):
    for before, after in _RENAMED:
        _rename_permissions(apps, before, after)


def backwards(apps, schema_editor):
    for before, after in _RENAMED:
        _rename_permissions(apps, after, before)


class Migration(migrations.Migration):
    dependencies = [
        ("annotation", "0004_judges"),
        ("auth", "0012_alter_user_first_name_max_length"),
        ("contenttypes", "0002_remove_content_type_name"),
        ("judges", "0005_move_llm_models"),
        ("trajectories", "0004_facts"),
    ]

    operations = [
        migrations.RemoveConstraint(model_name="judged", name="judged_once"),
        migrations.RemoveIndex(model_name="judged", name="judged_state"),
        migrations.RenameModel(old_name="Judging", new_name="JudgeRun"),
        migrations.RenameModel(old_name="Judged", new_name="JudgeResult"),
        migrations.RenameField(model_name="judgerun", old_name="most", new_name="max_items"),
        migrations.RenameField(model_name="judgerun", old_name="hands_in", new_name="saves_annotations"),
        migrations.RenameField(
            model_name="judgerun", old_name="handed_in_at", new_name="annotations_saved_at"
        ),
        migrations.RenameField(model_name="judgeresult", old_name="judging", new_name="judge_run"),
        migrations.RenameField(model_name="judgeresult", old_name="other", new_name="other_trajectory"),
        migrations.AlterField(
            model_name="judge",
            name="mode",
            field=models.CharField(
                choices=[
                    ("score", "Score each trajectory by the rubric"),
                    ("compare", "Choose the better of two trajectories"),
                ],
                max_length=10,
            ),
        ),
        migrations.AlterField(
            model_name="judgerun",
            name="judge",
            field=models.ForeignKey(
                on_delete=django.db.models.deletion.CASCADE, related_name="runs", to="judges.judge"
            ),
        ),
        migrations.AlterField(
            model_name="judgerun",
            name="campaign",
            field=models.ForeignKey(
                blank=True,
                null=True,
                on_delete=django.db.models.deletion.CASCADE,
                related_name="judge_runs",
                to="annotation.campaign",
            ),
        ),
        migrations.AlterField(
            model_name="judgeresult",
            name="judge_run",
            field=models.ForeignKey(
                on_delete=django.db.models.deletion.CASCADE, related_name="results", to="judges.judgerun"
            ),
        ),
        migrations.AlterField(
            model_name="judgeresult",
            name="item",
            field=models.ForeignKey(
                null=True,
                on_delete=django.db.models.deletion.CASCADE,
                related_name="judge_results",
                to="annotation.item",
            ),
        ),
        migrations.AlterField(
            model_name="judgeresult",
            name="trajectory",
            field=models.ForeignKey(
                on_delete=django.db.models.deletion.CASCADE,
                related_name="judge_results",
                to="trajectories.trajectory",
            ),
        ),
        migrations.AlterField(
            model_name="judgeresult",
            name="other_trajectory",
            field=models.ForeignKey(
                null=True,
                on_delete=django.db.models.deletion.CASCADE,
                related_name="judge_results_as_other",
                to="trajectories.trajectory",
            ),
        ),
        migrations.AddIndex(
            model_name="judgeresult",
            index=models.Index(fields=["judge_run", "state"], name="judged_state"),
        ),
        migrations.AddConstraint(
            model_name="judgeresult",
            constraint=models.UniqueConstraint(
                fields=("judge_run", "item", "trajectory"), name="judged_once", nulls_distinct=False
            ),
        ),
        migrations.RunPython(forwards, backwards),
    ]
