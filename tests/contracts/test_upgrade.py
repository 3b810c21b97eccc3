"""A database of an older version migrates to the newest schema and keeps its rows.

`fixtures/database_2026_11.sql.gz` is a dump of version 0.1 as it was in November 2026, before models and tables were
renamed: every table has a row, made by the services of then where there was one.
"""

import gzip
import os
import re
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import psycopg
import pytest
from django.apps import apps
from django.core.management import call_command
from django.db import ProgrammingError, connection
from django.db.migrations import Migration
from django.db.migrations.executor import MigrationExecutor
from django.db.migrations.loader import MigrationLoader

from apps.accounts.models import ApiKey, AuditEvent, Project
from apps.annotation.models import Annotation, Assignment, Campaign, Comment, Preference
from apps.core.database import fresh_schema
from apps.datasets.models import DatasetVersion
from apps.monitoring.models import Monitor
from apps.rewards.models import Endpoint, EndpointRevision
from apps.training.models import RewardModel, TrainingRun

pytestmark = pytest.mark.slow
DUMP = Path(__file__).parent / "fixtures" / "database_2026_11.sql.gz"
# Filled by Django itself.
FRAMEWORK_TABLES = ("django_migrations", "django_content_type", "auth_permission")
# Of Django's groups: keys are bigint where migrations made them, integer where the models did.
UNUSED_TABLES = {"auth_group_permissions"}

TABLES = "SELECT tablename FROM pg_tables WHERE schemaname = 'public'"
SCHEMA = {
    "columns": """
        SELECT table_name, column_name, data_type, character_maximum_length, is_nullable, column_default
        FROM information_schema.columns WHERE table_schema = 'public'""",
    "constraints": """
        SELECT conrelid::regclass::text, conname, pg_get_constraintdef(oid)
        FROM pg_constraint WHERE connamespace = 'public'::regnamespace""",
    "indexes": "SELECT tablename, indexname, indexdef FROM pg_indexes WHERE schemaname = 'public'",
    "triggers": """
        SELECT tgrelid::regclass::text, tgname, tgenabled::text, pg_get_triggerdef(oid)
        FROM pg_trigger WHERE NOT tgisinternal""",
    "migrations": "SELECT DISTINCT app, name FROM django_migrations",
    "functions": "SELECT proname, prosrc FROM pg_proc WHERE pronamespace = 'public'::regnamespace",
}


@contextmanager
def scratch_database(blocker: Any, name: str) -> Iterator[str]:
    """Django's connection leads to an empty database, as a role that may change the schema."""
    server_url = os.environ["DATABASE_URL"]
    name = f"{name}_{os.getpid()}"
    with psycopg.connect(server_url, autocommit=True) as server:
        server.execute(f'DROP DATABASE IF EXISTS "{name}"')
        server.execute(f'CREATE DATABASE "{name}"')
        role = server.info.user
        password = server.info.password
    before = dict(connection.settings_dict)
    with blocker.unblock():
        connection.close()
        connection.settings_dict |= {"NAME": name, "USER": role, "PASSWORD": password}
        try:
            yield f"{server_url.rpartition('/')[0]}/{name}"
        finally:
            connection.close()
            connection.settings_dict.clear()
            connection.settings_dict.update(before)
            with psycopg.connect(server_url, autocommit=True) as server:
                server.execute(f'DROP DATABASE "{name}" WITH (FORCE)')


def count_rows() -> dict[str, int]:
    with connection.cursor() as cursor:
        cursor.execute(TABLES)
        tables = [table for (table,) in cursor.fetchall() if table not in FRAMEWORK_TABLES]
        counts = {}
        for table in tables:
            cursor.execute(f'SELECT count(*) FROM "{table}"')
            counts[table] = cursor.fetchone()[0]
        return counts


def read_schema() -> dict[str, Counter[tuple[Any, ...]]]:
    with connection.cursor() as cursor:
        schema = {}
        for part, query in SCHEMA.items():
            cursor.execute(query)
            rows = [row for row in cursor.fetchall() if not set(row) & UNUSED_TABLES]
            schema[part] = Counter(tuple(map(_comparable, row)) for row in rows)
        return schema


def _declared_names() -> set[str]:
    models = apps.get_models(include_auto_created=True)
    return {each.name for model in models for each in [*model._meta.constraints, *model._meta.indexes]}


def _comparable(value: Any) -> Any:
    """Without the names that Django made of those that tables and columns had at the time."""
    if not isinstance(value, str):
        return value
    for name in re.findall(r"\b\w+_(?:[0-9a-f]{8}\w*|pkey|key|check|not_null)\b", value):
        value = value if name in _declared_names() else value.replace(name, "")
    return _without_casts(value)


def _without_casts(text: str) -> str:
    """PostgreSQL writes casts and brackets of a condition another way once it has been dumped and restored."""
    return re.sub(r"::[a-z ]+(\(\d+\))?(\[\])?|[()\s]", "", text)


@pytest.fixture(scope="module")
def rows_before(django_db_modify_db_settings: None, django_db_blocker: Any) -> Iterator[dict[str, int]]:
    """The dump, restored and migrated; the rows that each table had before."""
    with scratch_database(django_db_blocker, "upgrade") as url:
        with psycopg.connect(url) as db:
            db.execute(gzip.decompress(DUMP.read_bytes()).decode())
        counts = count_rows()
        call_command("migrate", verbosity=0)
        yield counts


def test_every_table_of_the_dump_has_a_row(rows_before: dict[str, int]) -> None:
    library_tables = ("account_", "socialaccount_", "mfa_", "auth_", "django_", "accounts_user_")
    assert [
        table for table, count in rows_before.items() if not count and not table.startswith(library_tables)
    ] == []


def test_no_row_is_lost(rows_before: dict[str, int]) -> None:
    """Whatever the tables are called now. Tables that are new have no rows yet, but for those that migrations fill."""
    after = count_rows()
    for made_by_migrations in ("accounts_projectsequence", "accounts_firstaccount"):
        after.pop(made_by_migrations)
    assert Counter(filter(None, after.values())) == Counter(filter(None, rows_before.values()))


def _fresh_schema(blocker: Any) -> dict[str, Counter[tuple[Any, ...]]]:
    """Of the tables that `migrate` makes in an empty database."""
    with scratch_database(blocker, "fresh"):
        call_command("migrate", verbosity=0)
        return read_schema()


def _assert_equal(
    schema: dict[str, Counter[tuple[Any, ...]]], fresh: dict[str, Counter[tuple[Any, ...]]]
) -> None:
    for part, rows in fresh.items():
        assert (sorted(map(str, schema[part] - rows)), sorted(map(str, rows - schema[part]))) == ([], []), (
            part
        )


def test_the_schema_is_that_of_a_fresh_database(rows_before: dict[str, int], django_db_blocker: Any) -> None:
    migrated = read_schema()
    fresh = _fresh_schema(django_db_blocker)
    _assert_equal(migrated, fresh)


def test_tables_of_an_empty_database_are_made_whole_or_not_at_all(
    django_db_modify_db_settings: None, django_db_blocker: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    with scratch_database(django_db_blocker, "whole"):
        with monkeypatch.context() as patch:
            patch.setattr(fresh_schema, "_app_sql", lambda: ["SELECT no_such_function()"])
            with pytest.raises(ProgrammingError, match="no_such_function"):
                fresh_schema.create_tables(connection)
        assert connection.introspection.table_names() == []
        assert fresh_schema.create_tables(connection)
        assert not fresh_schema.create_tables(connection)
        executor = MigrationExecutor(connection)
        assert executor.migration_plan(executor.loader.graph.leaf_nodes()) == []


def test_annotations_are_there(rows_before: dict[str, int]) -> None:
    campaign = Campaign.objects.get(name="Which answer is better?")
    assert campaign.project.slug == "old"
    assert campaign.guidelines == "Look at what was done."
    assert campaign.feedback_types == ["pairwise", "comment"]
    assert Annotation.objects.count() == 27
    preference = Preference.objects.order_by("pk")[0]
    assert preference.choice in ("a", "b", "tie", "both_bad")
    assert preference.annotation.assignment.item.trajectories.count() == 2
    assert Comment.objects.exclude(text="").count() == 6


def test_the_states_of_assignments_are_known(rows_before: dict[str, int]) -> None:
    states = Counter(Assignment.objects.values_list("state", flat=True))
    assert states.keys() == set(Assignment.State.values)
    assert states[Assignment.State.SUBMITTED] == 20


def test_datasets_and_models_are_there(rows_before: dict[str, int]) -> None:
    dataset = DatasetVersion.objects.get()
    assert (str(dataset), dataset.usable_pairs, dataset.state) == ("old/first@1", 6, "succeeded")
    run = TrainingRun.objects.get()
    assert run.dataset_version == dataset
    assert run.report == {"preference": {"accuracy": 0.75}}
    model = RewardModel.objects.get()
    assert (str(model), model.training_run) == ("old/first@1", run)


def test_endpoints_and_monitors_are_there(rows_before: dict[str, int]) -> None:
    endpoint = Endpoint.objects.get(project__slug="old")
    revision = EndpointRevision.objects.get(endpoint=endpoint)
    assert [component["model"] for component in revision.spec["components"]] == ["old/first@1"]
    assert list(revision.reward_models.all()) == [RewardModel.objects.get()]
    assert Monitor.objects.get().endpoint == endpoint


def test_accounts_are_there_and_the_audit_trail_is_whole(rows_before: dict[str, int]) -> None:
    assert Project.objects.get().name == "An old project"
    assert ApiKey.objects.get().scopes == ["reward"]
    assert AuditEvent.objects.filter(verb="member.added").exists()
    call_command("verify_audit", verbosity=0)


def _is_ours(migration: Migration) -> bool:
    return type(migration).__module__.startswith("apps.")


@pytest.mark.long
def test_the_oldest_schema_migrates_to_the_newest(django_db_blocker: Any) -> None:
    """From the first migration of each app, by the migrations that squashed ones replace."""
    with scratch_database(django_db_blocker, "oldest"):
        executor = MigrationExecutor(connection)
        executor.loader = MigrationLoader(connection, replace_migrations=False)
        ours = {key for key, migration in executor.loader.disk_migrations.items() if _is_ours(migration)}
        first = {key for key in ours if key[1] == "0001_initial"}
        graph = executor.loader.graph
        oldest_targets = sorted(key for key in first if ours & set(graph.forwards_plan(key)) <= first)
        assert len(oldest_targets) > 5
        executor.migrate(oldest_targets)
        call_command("migrate", verbosity=0)
        oldest = read_schema()
    fresh = _fresh_schema(django_db_blocker)
    _assert_equal(oldest, fresh)
