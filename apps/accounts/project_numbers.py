"""Numbers of a project's own things: its first training run is 1, whatever other projects have.

A row of ProjectSequence holds the last number of a table in a project. A trigger gives a new row the next one
(`project_number()`, migration accounts 0009), so that no insert can forget it. The row of the sequence is locked until
the end of the transaction, so that two never get the same. What inserts many rows takes a block (`take_numbers`).
A number is not used again: deleted rows leave gaps, transactions that were rolled back leave none.
"""

from typing import Any

from django.db import connection, migrations, models
from django.db.models import Value

_BATCH = 10_000  # rows numbered by one statement of a migration
_TAKE = """
    INSERT INTO accounts_projectsequence AS counter (project_id, name, last_number) VALUES (%s, %s, %s)
    ON CONFLICT (project_id, name) DO UPDATE SET last_number = counter.last_number + EXCLUDED.last_number
    RETURNING last_number
"""
NUMBER_FUNCTION = """
    CREATE FUNCTION project_number() RETURNS trigger LANGUAGE plpgsql AS $$
    BEGIN
        INSERT INTO accounts_projectsequence AS counter (project_id, name, last_number)
        VALUES (NEW.project_id, TG_TABLE_NAME, 1)
        ON CONFLICT (project_id, name) DO UPDATE SET last_number = counter.last_number + 1
        RETURNING last_number INTO NEW.number;
        RETURN NEW;
    END $$
"""
_FILL = """
    WITH batch AS (SELECT id, project_id FROM {table} WHERE id > %s ORDER BY id LIMIT %s),
    numbered AS (
        SELECT batch.id, batch.project_id, coalesce(counter.last_number, 0)
            + row_number() OVER (PARTITION BY batch.project_id ORDER BY batch.id) AS number
        FROM batch LEFT JOIN accounts_projectsequence AS counter
            ON counter.project_id = batch.project_id AND counter.name = %s
    ),
    counted AS (
        INSERT INTO accounts_projectsequence (project_id, name, last_number)
        SELECT project_id, %s, max(number) FROM numbered GROUP BY project_id
        ON CONFLICT (project_id, name) DO UPDATE SET last_number = EXCLUDED.last_number
    ),
    written AS (UPDATE {table} SET number = numbered.number FROM numbered WHERE {table}.id = numbered.id)
    SELECT max(id) FROM batch
"""


class ProjectSequence(models.Model):
    """name: of the table whose rows are counted."""

    project = models.ForeignKey("accounts.Project", models.CASCADE, related_name="+")
    name = models.CharField(max_length=63)
    last_number = models.PositiveIntegerField()

    class Meta:
        constraints = [models.UniqueConstraint(fields=["project", "name"], name="project_sequence_once")]

    def __str__(self) -> str:
        return f"{self.name}: {self.last_number}"


class ProjectNumberField(models.PositiveIntegerField):
    """The number of a row in its project; the trigger replaces the 0 that is inserted."""

    def __init__(self, *args: Any, **options: Any) -> None:
        super().__init__(*args, **{"db_default": Value(0), "editable": False, **options})


def take_numbers(project: int, table: str, count: int) -> range:
    """The next numbers of rows that are about to be inserted, in the caller's transaction."""
    with connection.cursor() as cursor:
        cursor.execute(_TAKE, [project, table, count])
        [last] = cursor.fetchone()
    return range(last - count + 1, last + 1)


def numbering_trigger(table: str) -> str:
    return (
        f"CREATE TRIGGER {table}_number BEFORE INSERT ON {table} FOR EACH ROW WHEN (NEW.number = 0) "
        "EXECUTE FUNCTION project_number()"
    )


def number_rows(table: str) -> list[Any]:
    """Operations of a migration that added the field: existing rows get numbers by their age, then the trigger."""

    def fill(apps: Any, schema_editor: Any) -> None:
        last = 0
        with schema_editor.connection.cursor() as cursor:
            while last is not None:
                cursor.execute(_FILL.format(table=table), [last, _BATCH, table, table])
                [last] = cursor.fetchone()

    return [
        migrations.RunPython(fill, migrations.RunPython.noop),
        migrations.RunSQL(numbering_trigger(table), f"DROP TRIGGER {table}_number ON {table}"),
    ]
