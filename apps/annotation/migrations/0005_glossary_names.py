"""Models, fields and states get the names of the glossary. Rows are kept; only the states' values change."""

from collections.abc import Callable
from typing import Any

import django.db.models.deletion
from django.db import migrations, models

STATES = {"given": "assigned", "leased": "locked", "open": "adjudicating", "judged": "by_judge"}


def rename_states(states: dict[str, str]) -> Callable[[Any, Any], None]:
    def rename(apps: Any, schema_editor: Any) -> None:
        for old, new in states.items():
            apps.get_model("annotation", "Assignment").objects.filter(state=old).update(state=new)

    return rename


class Migration(migrations.Migration):
    dependencies = [
        ("annotation", "0004_judges"),
        ("rubrics", "0002_rubrics"),
        ("trajectories", "0004_facts"),
    ]

    operations = [
        migrations.RemoveConstraint(model_name="assignment", name="assignment_one_lease"),
        migrations.RemoveConstraint(model_name="assignment", name="assignment_lease_has_end"),
        migrations.RemoveConstraint(model_name="item", name="item_done_within_taken"),
        migrations.RemoveConstraint(model_name="submission", name="submission_revision_once"),
        migrations.RemoveConstraint(model_name="preference", name="preference_once"),
        migrations.RemoveConstraint(model_name="ranking", name="ranking_once"),
        migrations.RemoveConstraint(model_name="rating", name="rating_accept_once"),
        migrations.RemoveConstraint(model_name="rating", name="rating_number_once"),
        migrations.RemoveConstraint(model_name="score", name="score_once"),
        migrations.RemoveConstraint(model_name="score", name="score_on_scale"),
        migrations.RemoveConstraint(model_name="marking", name="marking_once"),
        migrations.RemoveConstraint(model_name="marking", name="marking_says_something"),
        migrations.RemoveIndex(model_name="assignment", name="assignment_leases"),
        migrations.RemoveIndex(model_name="assignment", name="assignment_given"),
        migrations.RemoveIndex(model_name="item", name="item_random"),
        migrations.RemoveIndex(model_name="item", name="item_priority"),
        migrations.RemoveIndex(model_name="item", name="item_active"),
        migrations.RemoveIndex(model_name="item", name="item_pilot"),
        migrations.RenameModel(old_name="Submission", new_name="Annotation"),
        migrations.RenameModel(old_name="Score", new_name="CriterionScore"),
        migrations.RenameModel(old_name="Marking", new_name="StepLabelSet"),
        *(
            migrations.RenameField(model_name=model, old_name="submission", new_name="annotation")
            for model in ("preference", "ranking", "rating", "criterionscore", "steplabelset", "comment")
        ),
        migrations.RenameField(model_name="annotation", old_name="aside", new_name="is_surplus"),
        migrations.RenameField(model_name="assignment", old_name="is_given", new_name="is_reserved"),
        migrations.RenameField(model_name="assignment", old_name="leased_until", new_name="lock_expires_at"),
        migrations.RenameField(model_name="campaign", old_name="done_at", new_name="completed_at"),
        migrations.RenameField(model_name="campaign", old_name="kinds", new_name="feedback_types"),
        migrations.RenameField(model_name="campaign", old_name="lease_minutes", new_name="lock_minutes"),
        migrations.RenameField(
            model_name="campaign", old_name="most_each", new_name="max_items_per_annotator"
        ),
        migrations.RenameField(model_name="item", old_name="score", new_name="acquisition_score"),
        migrations.RenameField(model_name="item", old_name="wanted", new_name="overlap"),
        migrations.RenameField(model_name="item", old_name="taken", new_name="claimed_count"),
        migrations.RenameField(model_name="item", old_name="done", new_name="completed_count"),
        migrations.RenameField(
            model_name="participation", old_name="gold_from", new_name="gold_counted_from"
        ),
        migrations.AlterField(
            model_name="annotation",
            name="assignment",
            field=models.ForeignKey(
                on_delete=django.db.models.deletion.CASCADE,
                related_name="annotations",
                to="annotation.assignment",
            ),
        ),
        migrations.AlterField(
            model_name="criterionscore",
            name="trajectory",
            field=models.ForeignKey(
                on_delete=django.db.models.deletion.PROTECT,
                related_name="criterion_scores",
                to="trajectories.trajectory",
            ),
        ),
        migrations.AlterField(
            model_name="steplabelset",
            name="trajectory",
            field=models.ForeignKey(
                on_delete=django.db.models.deletion.PROTECT,
                related_name="step_label_sets",
                to="trajectories.trajectory",
            ),
        ),
        migrations.AlterField(
            model_name="assignment",
            name="state",
            field=models.CharField(
                choices=[
                    ("assigned", "Assigned"),
                    ("locked", "Locked"),
                    ("submitted", "Submitted"),
                    ("skipped", "Skipped"),
                    ("flagged", "Flagged"),
                    ("expired", "Expired"),
                    ("adjudicating", "Adjudicating"),
                    ("by_judge", "by a judge"),
                ],
                default="locked",
                max_length=20,
            ),
        ),
        migrations.RunPython(
            rename_states(STATES), rename_states({new: old for old, new in STATES.items()})
        ),
        migrations.AddIndex(
            model_name="assignment",
            index=models.Index(
                condition=models.Q(("state", "locked")), fields=["lock_expires_at"], name="assignment_locks"
            ),
        ),
        migrations.AddIndex(
            model_name="assignment",
            index=models.Index(
                condition=models.Q(("state", "assigned")), fields=["annotator"], name="assignment_assigned"
            ),
        ),
        migrations.AddIndex(
            model_name="item",
            index=models.Index(
                condition=models.Q(("claimed_count__lt", models.F("overlap"))),
                fields=["campaign", "claimed_count", "random_key"],
                name="item_random",
            ),
        ),
        migrations.AddIndex(
            model_name="item",
            index=models.Index(
                condition=models.Q(("claimed_count__lt", models.F("overlap"))),
                fields=["campaign", "-priority", "claimed_count", "random_key"],
                name="item_priority",
            ),
        ),
        migrations.AddIndex(
            model_name="item",
            index=models.Index(
                models.F("campaign"),
                models.OrderBy(models.F("acquisition_score"), descending=True, nulls_last=True),
                models.F("claimed_count"),
                models.F("random_key"),
                condition=models.Q(("claimed_count__lt", models.F("overlap"))),
                name="item_active",
            ),
        ),
        migrations.AddIndex(
            model_name="item",
            index=models.Index(
                condition=models.Q(("claimed_count__lt", models.F("overlap")), ("in_pilot", True)),
                fields=["campaign", "claimed_count", "random_key"],
                name="item_pilot",
            ),
        ),
        migrations.AddConstraint(
            model_name="assignment",
            constraint=models.UniqueConstraint(
                condition=models.Q(("state", "locked")), fields=("annotator",), name="assignment_one_lock"
            ),
        ),
        migrations.AddConstraint(
            model_name="assignment",
            constraint=models.CheckConstraint(
                condition=models.Q(
                    models.Q(("state", "locked"), _negated=True),
                    ("lock_expires_at__isnull", False),
                    _connector="OR",
                ),
                name="assignment_lock_expires",
            ),
        ),
        migrations.AddConstraint(
            model_name="item",
            constraint=models.CheckConstraint(
                condition=models.Q(("completed_count__lte", models.F("claimed_count"))),
                name="item_completed_within_claimed",
            ),
        ),
        migrations.AddConstraint(
            model_name="annotation",
            constraint=models.UniqueConstraint(
                fields=("assignment", "revision"), name="annotation_revision_once"
            ),
        ),
        migrations.AddConstraint(
            model_name="preference",
            constraint=models.UniqueConstraint(
                fields=("annotation", "criterion"), name="preference_once", nulls_distinct=False
            ),
        ),
        migrations.AddConstraint(
            model_name="ranking",
            constraint=models.UniqueConstraint(fields=("annotation",), name="ranking_once"),
        ),
        migrations.AddConstraint(
            model_name="rating",
            constraint=models.UniqueConstraint(
                condition=models.Q(("rating", None)),
                fields=("annotation", "trajectory"),
                name="rating_accept_once",
            ),
        ),
        migrations.AddConstraint(
            model_name="rating",
            constraint=models.UniqueConstraint(
                condition=models.Q(("accept", None)),
                fields=("annotation", "trajectory"),
                name="rating_number_once",
            ),
        ),
        migrations.AddConstraint(
            model_name="criterionscore",
            constraint=models.UniqueConstraint(
                fields=("annotation", "trajectory", "criterion"), name="criterion_score_once"
            ),
        ),
        migrations.AddConstraint(
            model_name="criterionscore",
            constraint=models.CheckConstraint(
                condition=models.Q(
                    ("low__lt", models.F("high")),
                    ("value__gte", models.F("low")),
                    ("value__lte", models.F("high")),
                ),
                name="criterion_score_on_scale",
            ),
        ),
        migrations.AddConstraint(
            model_name="steplabelset",
            constraint=models.UniqueConstraint(
                fields=("annotation", "trajectory"), name="step_label_set_once"
            ),
        ),
        migrations.AddConstraint(
            model_name="steplabelset",
            constraint=models.CheckConstraint(
                condition=models.Q(
                    ("has_first_error", True),
                    models.Q(models.Q(("labels", {}), _negated=True), ("first_error", None)),
                    _connector="OR",
                ),
                name="step_label_set_not_empty",
            ),
        ),
    ]
