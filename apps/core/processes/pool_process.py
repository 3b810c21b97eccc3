"""A process of a pool of the application. Imports no Django before `begin` has set it up."""

import os
import signal

from apps.core.processes.parent_death import die_with


def begin(parent: int) -> None:
    """What a pool of `multiprocessing` runs first in each process. parent: the process id of the pool's owner."""
    die_with(parent)
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # is sent to the whole group; the owner ends the pool
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "apps.config.settings")
    import django

    django.setup()
