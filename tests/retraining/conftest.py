import pytest


@pytest.fixture(autouse=True)
def quick_children(forked_children: None) -> None:
    """As all of these are."""
