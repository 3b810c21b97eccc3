"""Code of trainers from pip (.ci/peers.txt), and empty modules in place of what it imports besides."""

import importlib.util
import sys
import types
from pathlib import Path
from typing import Any

PEERS = Path(sys.prefix) / "peers"


class Anything(types.ModuleType):
    """A module in which every name is there, and nothing does anything."""

    __path__: list[str] = []

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        return type(name, (), {"__init__": lambda self, *args, **options: None})


class EmptyModules:
    """Finds whatever of `names` is not installed."""

    def __init__(self, *names: str) -> None:
        self.names = names

    def find_spec(self, name: str, path: Any = None, target: Any = None) -> Any:
        if name.split(".")[0] in self.names:
            return importlib.util.spec_from_loader(name, loader=self)  # type: ignore[arg-type]
        return None

    def create_module(self, spec: Any) -> types.ModuleType:
        return Anything(spec.name)

    def exec_module(self, module: types.ModuleType) -> None:
        """Nothing to execute."""
