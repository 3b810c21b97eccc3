"""Vectors in PostgreSQL: the extension pgvector and its index, where the server has it.

Embeddings are stored as `real[]`, so the table is the same with and without the extension. With it an HNSW index
(Malkov and Yashunin, 2016: https://arxiv.org/abs/1603.09320) over their half-precision form finds neighbours.
"""

import logging

import psycopg
from django.db import connections, transaction
from django.db.utils import ProgrammingError

from apps.core.errors import DomainError

log = logging.getLogger(__name__)
DIMENSIONS = 384  # of the embedded encoder
INDEX = "semantic_passage_hnsw"
_CREATE = f"""
    CREATE INDEX IF NOT EXISTS {INDEX} ON semantic_search_trajectorypassage
    USING hnsw ((embedding::halfvec({DIMENSIONS})) halfvec_cosine_ops)
"""
MISSING = (
    "Semantic search needs the PostgreSQL extension pgvector 0.8 or later, which this database server does not have. "
    "Install it, run CREATE EXTENSION vector as a superuser in this database, then run manage.py migrate."
)


def has_vectors(using: str = "default") -> bool:
    """Whether the extension is there, with its index."""
    with connections[using].cursor() as cursor:
        cursor.execute("SELECT to_regclass(%s) IS NOT NULL", [f"public.{INDEX}"])
        (found,) = cursor.fetchone()
    return bool(found)


def require_vectors() -> None:
    """Raises DomainError where semantic search cannot work, with what to do."""
    if not has_vectors():
        raise DomainError(MISSING, status=409)


def prepare_vector_index(using: str) -> None:
    """Create the extension where this role may, and the index where the extension is there. Called after migrations."""
    connection = connections[using]
    with connection.cursor() as cursor:
        cursor.execute("SELECT to_regclass('public.semantic_search_trajectorypassage') IS NOT NULL")
        if not cursor.fetchone()[0]:
            return
        cursor.execute("SELECT installed_version FROM pg_available_extensions WHERE name = 'vector'")
        row = cursor.fetchone()
        if row is None:
            return
        try:
            with transaction.atomic(using):
                if row[0] is None:
                    cursor.execute("CREATE EXTENSION vector")
                cursor.execute(_CREATE)
        except ProgrammingError as error:
            if not isinstance(
                error.__cause__, psycopg.errors.InsufficientPrivilege | psycopg.errors.UndefinedObject
            ):
                raise
            log.warning("semantic search is not available: %s", MISSING)
