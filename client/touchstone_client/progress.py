"""Progress of long calls: a bar of tqdm, or a function of the caller."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from touchstone_client.errors import MissingExtra

# done, total: in the unit of the call; total is None while it is not known.
ProgressFunction = Callable[[int, int | None], None]
Progress = bool | ProgressFunction


@contextmanager
def progress_bar(
    progress: Progress, label: str, *, unit: str, scale: bool = False
) -> Iterator[ProgressFunction]:
    """progress: True for a bar, a function to be called instead, False for nothing. scale: write k, M, G.

    Raises MissingExtra.
    """
    if callable(progress):
        yield progress
    elif not progress:
        yield lambda done, total: None
    else:
        bar = _new_bar(label, unit, scale)

        def show(done: int, total: int | None) -> None:
            bar.total = total
            bar.update(done - bar.n)

        with bar:
            yield show


def _new_bar(label: str, unit: str, scale: bool) -> Any:
    try:
        from tqdm.auto import tqdm  # type: ignore[import-untyped,import-not-found,unused-ignore]
    except ImportError:
        raise MissingExtra("progress=True", "progress", "tqdm") from None
    return tqdm(desc=label, unit=unit, unit_scale=scale)
