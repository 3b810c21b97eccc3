"""Search vectors made here are those PostgreSQL makes, to the byte; where it would not, it makes them."""

import random
import re

import pytest
from django.db import connection

from apps.accounts.models import Project
from apps.trajectories import search_vectors, services
from apps.trajectories.models import SearchText
from apps.trajectories.search_text import search_query
from apps.trajectories.search_vectors import database_agrees, search_vector
from tests.trajectories.reading import read_one

pytestmark = pytest.mark.django_db
_LONG = "x" * 2046
TEXTS = (
    *("", " ", "—", "The quick_brown FOX", "src/app.py:12 a@example.org", "“quoted” text… 😀"),
    *("1e5", "1e5x", "1E5E6 1e5_x 1e5", "0x1f 12abc abc12 1_2 _a_", "9" * 2047 + "e5x"),
    *(_LONG + " y", _LONG + "x y", "1e5" + _LONG, "1e5" + _LONG + "x z", "x_" * 3000),
    *("w " * 20_000, " ".join(map(str, range(20_000))), "a b " * 9000, "a " * 255 + "b " * 16_128 + "a a"),
    *(" ".join(map(str, range(16_380))) + " q" * times for times in range(1, 6)),
)


def by_database(texts: list[str]) -> list[bytes]:
    words = [re.sub(r"[^\w]+", " ", text) for text in texts]
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT tsvectorsend(to_tsvector('simple', text)) FROM unnest(%s::text[]) AS given (text)",
            [words],
        )
        return [bytes(vector) for (vector,) in cursor.fetchall()]


def random_texts(count: int) -> list[str]:
    dice = random.Random(7)
    return ["".join(dice.choices("abXYZeE0129__  .,-—\n", k=dice.choice((3, 8, 40)))) for _ in range(count)]


def test_vectors_are_those_of_the_database() -> None:
    texts = [*TEXTS, *random_texts(2000)]
    assert [search_vector(text) for text in texts] == by_database(texts)


def test_letters_of_other_alphabets_are_left_to_the_database() -> None:
    assert [search_vector(text) for text in ("café", "Straße", "日本", "a ı")] == [None] * 4


def test_a_database_with_other_rules_makes_the_vectors(
    project: Project, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert database_agrees()
    monkeypatch.setattr(search_vectors, "_PROBE", "naïve")  # None here, a vector there
    database_agrees.cache_clear()
    try:
        assert not database_agrees()
        messages = [{"role": "user", "content": "Where is it?"}, {"role": "assistant", "content": "Found"}]
        trajectory = read_one({"messages": messages})
        services.store_trajectories(project=project, trajectories=[trajectory], source_format="atif")
    finally:
        database_agrees.cache_clear()
    assert SearchText.objects.filter(words=search_query("found")).exists()
