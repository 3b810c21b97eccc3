"""Code of trainers from pip (.ci/peers.txt), and empty modules in place of what it imports besides."""

import contextlib
import importlib.util
import sys
import types
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

PEERS = Path(sys.prefix) / "peers"


class Anything(types.ModuleType):
    """A module in which every name is there, and nothing does anything."""

    __path__: list[str] = []

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        return type(name, (), {"__init__": lambda self, *args, **options: None, "__call__": _unchanged})


def _unchanged(self: Any, decorated: Any) -> Any:
    """A decorator with arguments, which leaves what it decorates as it is."""
    return decorated


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


@contextlib.contextmanager
def peer_loader() -> Iterator[Callable[..., Any]]:
    """load(package, file, replaced): one file of a peer, the rest of its package and `replaced` being empty."""
    before, finders, empty = set(sys.modules), list(sys.meta_path), set[str]()

    def load(package: str, file: str, *replaced: str) -> Any:
        path = PEERS / package / file
        if not path.is_file():
            pytest.skip(
                f"{package} is not installed ({path} is missing): `make install-dev` fetches it from PyPI"
            )
        empty.update((package, *replaced))
        sys.meta_path[:] = [EmptyModules(*empty), *finders]
        name = f"{package}.{file.removesuffix('.py').replace('/', '.')}"
        spec = importlib.util.spec_from_file_location(name, path)
        assert spec is not None and spec.loader is not None
        module = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(module)
        return module

    try:
        yield load
    finally:
        sys.meta_path[:] = finders
        for name in set(sys.modules) - before:
            if name.split(".")[0] in empty:
                del sys.modules[name]
