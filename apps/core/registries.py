"""What upper apps add to lower ones: entries of a registry, which are loaded when it is read for the first time.

An app adds its entries in the method `register` of its AppConfig. Loading all of them imports the services of every
app, which takes longer than everything else in the start of a command; most commands read no registry.
"""

import threading
from collections.abc import Callable, Iterable, Iterator, MutableMapping, Sequence
from typing import Generic, TypeVar, overload

from django.apps import apps

Entry = TypeVar("Entry")
Key = TypeVar("Key")
_lock = threading.RLock()  # entered again where `register` of an app reads a registry
_progress = {"begun": False, "done": False}


def load_registrations() -> None:
    """Call `register` of the config of each app, once in a process. Processes that last do it before they are ready."""
    if _progress["done"]:
        return
    with _lock:
        if _progress["begun"]:
            return
        apps.check_models_ready()
        _progress["begun"] = True
        try:
            for config in apps.get_app_configs():
                register: Callable[[], None] | None = getattr(config, "register", None)
                if register is not None:
                    register()
        except BaseException:
            _progress["begun"] = (
                False  # adding is repeatable, and half of the entries must never pass for all
            )
            raise
        _progress["done"] = True


class Registry(Sequence[Entry], Generic[Entry]):
    """Entries in the order of the apps, each once."""

    def __init__(self, entries: Iterable[Entry] = ()) -> None:
        self._entries = list(entries)

    def add(self, entry: Entry) -> None:
        if entry not in self._entries:
            self._entries.append(entry)

    @overload
    def __getitem__(self, place: int) -> Entry: ...
    @overload
    def __getitem__(self, place: slice) -> list[Entry]: ...
    def __getitem__(self, place: int | slice) -> Entry | list[Entry]:
        load_registrations()
        return self._entries[place]

    def __iter__(self) -> Iterator[Entry]:
        load_registrations()
        return iter(self._entries)

    def __len__(self) -> int:
        load_registrations()
        return len(self._entries)


class NamedRegistry(MutableMapping[Key, Entry], Generic[Key, Entry]):
    """Entries by name, in the order of the apps. The same name again replaces the entry."""

    def __init__(self, entries: dict[Key, Entry] | None = None) -> None:
        self._entries = dict(entries or {})

    def __setitem__(self, name: Key, entry: Entry) -> None:
        self._entries[name] = entry

    def __delitem__(self, name: Key) -> None:
        del self._entries[name]

    def __getitem__(self, name: Key) -> Entry:
        load_registrations()
        return self._entries[name]

    def __iter__(self) -> Iterator[Key]:
        load_registrations()
        return iter(self._entries)

    def __len__(self) -> int:
        load_registrations()
        return len(self._entries)
