"""What the tests of a module share, where making it takes long: rows, and a home with an artifact store."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any


def home_settings(folder: Path) -> dict[str, Any]:
    from django.conf import settings

    stores = {
        name: {
            "BACKEND": "django.core.files.storage.FileSystemStorage",
            "OPTIONS": {"location": folder / place},
        }
        for name, place in (("default", "files"), ("artifacts", "artifacts"))
    }
    return {
        "HOME": folder,
        "STORAGES": settings.STORAGES | stores,
        "STATIC_ROOT": folder / "static",
        "TENSORBOARD_DIR": folder / "tensorboard",
    }


@contextmanager
def rows_of_a_module(blocker: Any) -> Iterator[None]:
    """Rows made in it are there for all tests of a module; each has its own transaction within, rolled back as ever.

    For a fixture of scope `module` that asks for `django_db_setup`; none of the module's tests may commit.
    """
    from django.db import transaction

    with blocker.unblock(), transaction.atomic():
        yield
        transaction.set_rollback(True)
