"""Passages are written here."""

from collections.abc import Sequence

from django.db import connection

from apps.accounts.models import Project
from workers.schema.bulk_items import EmbeddedPassage

_COLUMNS = "project_id, trajectory_id, first_step, last_step, embedding"


def store_passages(project: Project, passages: Sequence[tuple[int, Sequence[EmbeddedPassage]]]) -> None:
    """(key, passages) of trajectories; theirs of before are replaced. Within a transaction. Raises IntegrityError where
    a trajectory is gone."""
    with connection.cursor() as cursor:
        cursor.execute(
            "DELETE FROM semantic_search_trajectorypassage WHERE trajectory_id = ANY(%s)",
            [[key for key, _ in passages]],
        )
        with cursor.copy(f"COPY semantic_search_trajectorypassage ({_COLUMNS}) FROM STDIN") as copy:
            for key, found in passages:
                for passage in found:
                    copy.write_row((project.pk, key, passage.first, passage.last, passage.embedding))
