"""Around everything that makes a model of transformers: one model at a time in a process, and quietly."""

import threading
from collections.abc import Iterator
from contextlib import contextmanager

from transformers.utils import logging

_loading = threading.RLock()


@contextmanager
def transformers_loading() -> Iterator[None]:
    """Other threads wait, and no progress bars or warnings are drawn on standard error.

    transformers replaces functions of its own classes while it loads (`tie_weights`, the initialisers) and restores
    them afterwards. Of two loads at the same time, one can keep weights without data: `Cannot copy out of meta tensor`.
    """
    with _loading:
        shown, verbosity = logging.is_progress_bar_enabled(), logging.get_verbosity()
        logging.disable_progress_bar()
        logging.set_verbosity_error()
        try:
            yield
        finally:
            logging.set_verbosity(verbosity)
            if shown:
                logging.enable_progress_bar()
