"""Maps that keep what they hold on disk give the same answers as a dictionary."""

import tracemalloc

from apps.core.storage.disk_map import DiskMap


def test_it_has_what_was_put_in_last() -> None:
    counts: DiskMap[int] = DiskMap(in_memory=3)
    expected: dict[str, int] = {}
    for number in range(200):
        key = f"k{number * 7 % 23}"
        assert counts.get(key) == expected.get(key)
        counts[key] = expected[key] = (counts.get(key) or 0) + 1
    assert {key: counts.get(key) for key in expected} == expected
    assert counts.get("other") is None


def test_any_text_is_a_key() -> None:
    names: DiskMap[str] = DiskMap(in_memory=1)
    keys = ["", "\0", "\0a", "\ud800", "'; --", "é"]
    for key in keys:
        names[key] = f"value of {key!r}"
    assert [names.get(key) for key in keys] == [f"value of {key!r}" for key in keys]


def test_memory_does_not_grow_with_the_keys() -> None:
    counts: DiskMap[int] = DiskMap(in_memory=100)
    tracemalloc.start()
    for number in range(20_000):
        counts[f"{number:064x}"] = 0
    held = tracemalloc.get_traced_memory()[0]
    tracemalloc.stop()
    assert held < 200_000
    assert counts.get(f"{777:064x}") == 0
