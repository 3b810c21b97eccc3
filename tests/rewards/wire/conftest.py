"""Trainers' own files."""

from collections.abc import Iterator
from typing import Any

import pytest

from tests.peer_modules import peer_loader


@pytest.fixture
def load_peer() -> Iterator[Any]:
    with peer_loader() as load:
        yield load
