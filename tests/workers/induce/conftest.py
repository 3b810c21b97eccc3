"""One encoder for all inductions of a test process."""

from collections.abc import Iterator
from functools import cache

import pytest


@pytest.fixture(autouse=True, scope="session")
def shared_embedder() -> Iterator[None]:
    """Each induction loads the encoder and its tokenizer, a third of a second, and never changes them."""
    from workers.induce import pipeline

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(pipeline, "Embedder", cache(pipeline.Embedder))
        yield
