"""Where the files lie that are no modules: templates, static files, the documentation site, the client's metadata.

In a checkout they are at its root. The wheel has them in `apps/_files`, where `setup.py` copies them, with the same
names; so a path below `FILES` is right in both.
"""

import os
from pathlib import Path

_APPS = Path(__file__).parents[1]
_PACKAGED = _APPS / "_files"

IS_CHECKOUT = not _PACKAGED.is_dir()
FILES = _APPS.parent if IS_CHECKOUT else _PACKAGED


def default_home() -> Path:
    """Where TOUCHSTONE_HOME is not set: `var` of a checkout, else a folder of the user's data."""
    if IS_CHECKOUT:
        return FILES / "var"
    data = os.environ.get("XDG_DATA_HOME") or ""
    base = Path(data) if Path(data).is_absolute() else Path.home() / ".local" / "share"
    return base / "touchstone"
