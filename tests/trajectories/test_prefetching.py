import threading
from collections.abc import Generator

import pytest

from apps.trajectories.prefetching import prefetch


def test_values_come_in_order() -> None:
    assert list(prefetch(number for number in range(100))) == list(range(100))


def test_an_error_comes_where_it_stands() -> None:
    def source() -> Generator[int]:
        yield 1
        raise ValueError("the disk is gone")

    values = prefetch(source())
    assert next(values) == 1
    with pytest.raises(ValueError, match="the disk is gone"):
        next(values)


def test_it_is_read_in_another_thread_and_only_a_little_ahead() -> None:
    threads, made, enough = set(), [], threading.Event()

    def source() -> Generator[int]:
        for number in range(1000):
            threads.add(threading.current_thread())
            made.append(number)
            if number == 3:
                enough.set()
            yield number

    values = prefetch(source())
    assert next(values) == 0
    assert enough.wait(30)  # one handed over, two in store, one in hand
    assert made == [0, 1, 2, 3]
    assert threading.current_thread() not in threads
    values.close()
    for thread in threads:
        thread.join(30)
        assert not thread.is_alive()
    assert len(made) < 10
