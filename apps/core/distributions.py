"""What our two distributions are called, which version is installed, and whether the import names are ours.

Their names are not `touchstone` and `touchstone-client`: the first belongs to a stranger on the package index, the
second to the first person who takes it. None of ours is ever asked from an index (docs/decisions.md).
"""

import tomllib
from functools import cache
from importlib.metadata import packages_distributions, version
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from apps.core.package_files import FILES

SERVER = "touchstone-rewards"
CLIENT = "touchstone-rewards-client"  # imported as `touchstone_client`
IMPORT_NAMES = ("apps", "workers", "touchstone_client")
_SEPARATE = "Install Touchstone in a separate environment: python -m venv touchstone-env"


@cache
def client_project() -> dict[str, Any]:
    """The table `project` of the client's pyproject.toml."""
    project: dict[str, Any] = tomllib.loads((FILES / "client" / "pyproject.toml").read_text())["project"]
    return project


def client_wheel_name() -> str:
    return f"{CLIENT.replace('-', '_')}-{client_project()['version']}-py3-none-any.whl"


def installed_version() -> str:
    return version(SERVER)


def taken_name() -> str | None:
    """A sentence where Python finds another package under one of our import names; only looked for, not imported."""
    ours = Path(__file__).parents[2]
    spec = find_spec("workers")
    found = Path(spec.origin).parents[1] if spec is not None and spec.origin else None
    if found == ours:
        return None
    where = spec.origin or list(spec.submodule_search_locations or ()) if spec is not None else "nowhere"
    return f"The import name `workers` belongs to another package here ({where}). {_SEPARATE}"


def shared_names() -> str | None:
    """A sentence where another distribution installed files under one of our import names. Takes tenths of a second."""
    owners = packages_distributions()
    for name in IMPORT_NAMES:
        if others := sorted(set(owners.get(name, ())) - {SERVER, CLIENT}):
            return (
                f"{', '.join(others)} also installs files under the import name `{name}`, so one of the two does not "
                f"work. {_SEPARATE}"
            )
    return None
