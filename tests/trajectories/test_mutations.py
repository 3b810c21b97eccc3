"""Whatever is broken in a document, it ends in trajectories or in an error that says where."""

import json
import random

import pytest

from apps.accounts.models import Project
from tests.trajectories.mutations import DOCUMENTS, mutated, read_or_refused, stored_whole

MUTATIONS = 300


@pytest.mark.parametrize("name", DOCUMENTS)
def test_it_is_read_or_refused(name: str, project: Project) -> None:
    dice, ends, prepared = random.Random(name), {"read": 0, "refused": 0}, []
    raw = json.dumps(DOCUMENTS[name]).encode()
    for _ in range(MUTATIONS):
        good, bad = read_or_refused(mutated(raw, dice), name)
        ends["read"] += len(good)
        ends["refused"] += len(bad)
        prepared += good
    assert min(ends.values()) > 10
    stored_whole(project, prepared)
