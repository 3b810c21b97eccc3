"""A change of version within a policy run is announced once by all processes, and costs no query while it stays."""

import asyncio
from datetime import timedelta

import pytest
from django.db import OperationalError
from django.utils import timezone

from apps.accounts.models import Project
from apps.rewards.accounting import RUN_VERSIONS_KEPT, delete_expired, store_run_version
from apps.rewards.models import Endpoint, PolicyRunVersion
from apps.rewards.serving import run_versions
from apps.rewards.serving.run_versions import RunKey, RunVersions

KEY = (1, "grpo")


class Store:
    """The table of all processes."""

    def __init__(self) -> None:
        self.rows: dict[RunKey, int] = {}
        self.queries = 0
        self.is_down = False

    def __call__(self, key: RunKey, version: int) -> int | None:
        if self.is_down:
            raise OperationalError("down")
        self.queries += 1
        before, self.rows[key] = self.rows.get(key), version
        return before if before != version else None


def test_of_several_processes_one_announces_a_change() -> None:
    async def ask() -> list[int | None]:
        store = Store()
        first, second = RunVersions(store), RunVersions(store)
        found = []
        for process, version in ((first, 1), (second, 1), (first, 1), (second, 2), (first, 2), (second, 2)):
            found.append(await process.change(KEY, version))
        assert store.queries == 4  # each process: the run, and its other version
        for _ in range(100):
            assert await first.change(KEY, 2) is None
        assert store.queries == 4
        assert (
            await RunVersions(store).change(KEY, 3) == 2
        )  # a process that never saw the run announces it too
        return found

    assert asyncio.run(ask()) == [None, None, None, 1, None, None]


def test_without_the_database_and_for_too_many_runs_memory_answers(monkeypatch: pytest.MonkeyPatch) -> None:
    async def ask() -> None:
        store = Store()
        store.is_down = True
        process = RunVersions(store)
        assert [await process.change(KEY, version) for version in (1, 1, 2)] == [None, None, 1]
        store.is_down = False
        monkeypatch.setattr(run_versions, "MOST_ASKED", 10)
        for number in range(50):
            await process.change((1, f"run {number}"), 1)
        assert store.queries == 8
        assert await process.change((1, "run 49"), 2) == 1
        await process.change((2, "grpo"), 1)
        assert store.queries == 9, "the callers of one endpoint take nothing from another"

    asyncio.run(ask())


@pytest.mark.django_db
def test_the_table_says_what_was_before_to_one_of_those_who_ask(project: Project) -> None:
    endpoint = Endpoint.objects.create(project=project, name="e").pk
    answers = [store_run_version(endpoint=endpoint, run="r", version=version) for version in (1, 1, 2, 2, 1)]
    assert answers == [None, None, 1, None, 2]
    assert store_run_version(endpoint=endpoint + 1, run="r", version=1) is None  # deleted meanwhile
    assert PolicyRunVersion.objects.count() == 1
    PolicyRunVersion.objects.update(at=timezone.now() - RUN_VERSIONS_KEPT - timedelta(days=1))
    delete_expired()
    assert not PolicyRunVersion.objects.exists()
