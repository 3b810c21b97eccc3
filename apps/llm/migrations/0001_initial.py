"""The tables of LLM connections come from the app `judges`, with their rows: only Django's state changes here.

They get their new names in 0002, once nothing of `judges` and `metrics` refers to the old models.
"""

import django.db.models.deletion
import django.utils.timezone
from django.conf import settings
from django.db import migrations, models


class Migration(migrations.Migration):
    initial = True

    dependencies = [
        ("accounts", "0002_invitations"),
        ("annotation", "0004_judges"),
        ("judges", "0003_judges"),
        ("trajectories", "0004_facts"),
        migrations.swappable_dependency(settings.AUTH_USER_MODEL),
    ]

    operations = [
        migrations.SeparateDatabaseAndState(
            state_operations=[
                migrations.CreateModel(
                    name="LLMConnection",
                    fields=[
                        ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                        ("name", models.CharField(max_length=100)),
                        ("base_url", models.CharField(blank=True, max_length=500)),
                        ("model", models.CharField(blank=True, max_length=200)),
                        ("folder", models.CharField(blank=True, max_length=500)),
                        ("key", models.TextField(blank=True)),
                        ("answer_tokens", models.PositiveIntegerField(default=4096)),
                        ("prompt_price", models.DecimalField(blank=True, decimal_places=4, max_digits=12, null=True)),
                        ("completion_price", models.DecimalField(blank=True, decimal_places=4, max_digits=12, null=True)),
                        ("monthly_limit", models.DecimalField(blank=True, decimal_places=2, max_digits=12, null=True)),
                        ("calls_per_minute", models.PositiveIntegerField(blank=True, null=True)),
                        ("next_call_at", models.DateTimeField(null=True)),
                        ("created_at", models.DateTimeField(default=django.utils.timezone.now)),
                        ("created_by", models.ForeignKey(null=True, on_delete=django.db.models.deletion.SET_NULL, to=settings.AUTH_USER_MODEL)),
                        ("project", models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name="llm_connections", to="accounts.project")),
                    ],
                    options={"db_table": "judges_languagemodel", "ordering": ["name"]},
                ),
                migrations.CreateModel(
                    name="Spending",
                    fields=[
                        ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                        ("name", models.CharField(max_length=100)),
                        ("day", models.DateField()),
                        ("purpose", models.CharField(choices=[("trial", "Connection tests"), ("metrics", "Metric extraction"), ("judging", "Judge runs"), ("endpoint", "Endpoints")], max_length=10)),
                        ("calls", models.PositiveIntegerField(default=0)),
                        ("failed", models.PositiveIntegerField(default=0)),
                        ("prompt_tokens", models.PositiveBigIntegerField(default=0)),
                        ("completion_tokens", models.PositiveBigIntegerField(default=0)),
                        ("cost", models.DecimalField(decimal_places=8, default=0, max_digits=16)),
                        ("language_model", models.ForeignKey(blank=True, null=True, on_delete=django.db.models.deletion.SET_NULL, related_name="spendings", to="llm.llmconnection")),
                        ("project", models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name="spendings", to="accounts.project")),
                    ],
                    options={"db_table": "judges_spending", "ordering": ["-day", "name", "purpose"]},
                ),
                migrations.CreateModel(
                    name="CachedCompletion",
                    fields=[
                        ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                        ("key", models.CharField(max_length=64)),
                        ("answer", models.JSONField()),
                        ("comment", models.ForeignKey(null=True, on_delete=django.db.models.deletion.CASCADE, related_name="+", to="annotation.comment")),
                        ("trajectory", models.ForeignKey(null=True, on_delete=django.db.models.deletion.CASCADE, related_name="+", to="trajectories.trajectory")),
                        ("other", models.ForeignKey(null=True, on_delete=django.db.models.deletion.CASCADE, related_name="+", to="trajectories.trajectory")),
                        ("language_model", models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name="completions", to="llm.llmconnection")),
                    ],
                    options={"db_table": "judges_answer"},
                ),
                migrations.AddConstraint(
                    model_name="llmconnection",
                    constraint=models.UniqueConstraint(fields=("project", "name"), name="language_model_name_once"),
                ),
                migrations.AddConstraint(
                    model_name="llmconnection",
                    constraint=models.CheckConstraint(condition=models.Q(models.Q(("base_url", ""), models.Q(("folder", ""), _negated=True)), models.Q(models.Q(("base_url", ""), _negated=True), ("folder", "")), _connector="OR"), name="language_model_one_place"),
                ),
                migrations.AddConstraint(
                    model_name="spending",
                    constraint=models.UniqueConstraint(fields=("language_model", "day", "purpose"), name="spending_once"),
                ),
                migrations.AddConstraint(
                    model_name="cachedcompletion",
                    constraint=models.UniqueConstraint(fields=("language_model", "key"), name="answer_once"),
                ),
            ],
        ),
    ]
