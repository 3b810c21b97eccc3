"""The model and validator of ATIF that Harbor publishes, from pip, next to the environment (.ci/peers.txt)."""

import importlib
import sys
import types
from functools import cache
from pathlib import Path
from typing import Any

import pytest

HARBOR = Path(sys.prefix) / "peers" / "harbor"


@cache
def _validator() -> Any:
    """Harbor's TrajectoryValidator; None where it is not installed. Its package is not run, which needs much else."""
    if not HARBOR.is_dir():
        return None
    package = types.ModuleType("harbor")
    package.__path__ = [str(HARBOR)]
    sys.modules["harbor"] = package
    return importlib.import_module("harbor.utils.trajectory_validator").TrajectoryValidator


def has_harbor() -> bool:
    return _validator() is not None


def require_harbor() -> None:
    if not has_harbor():
        pytest.skip(f"harbor is not installed ({HARBOR} is missing): `make install-dev` fetches it from PyPI")


def harbor_errors(document: dict[str, Any]) -> list[str]:
    """What Harbor's validator has against a document."""
    validator = _validator()()
    validator.validate(document)
    return list(validator.errors)
