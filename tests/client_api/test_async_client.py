"""`AsyncClient`: the same calls, awaited."""

from pathlib import Path
from typing import Any

import pytest
from touchstone_client import AsyncClient, Refused

from tests.client_api.conftest import CHATS, comparison

pytestmark = pytest.mark.django_db(transaction=True)


def test_import_list_and_read(with_async: Any, tmp_path: Path) -> None:
    async def use(client: AsyncClient) -> None:
        result = await client.trajectories.import_file(CHATS, batch=3)
        assert result.created == 8
        found = client.trajectories.list(page_size=3)
        assert len([entry async for entry in found]) == len(await found.to_list()) == 8
        assert [entry.steps for entry in await found.take(2)] == [2, 2]
        document = await client.trajectories.get((await found.take(1))[0])
        assert document["steps"]
        assert await found.save(tmp_path / "list.jsonl") == 8
        await client.feedback.add([comparison(number) for number in range(4)])
        frame = await client.feedback.iter().to_pandas()
        assert list(frame.kind) == ["pairwise"] * 4
        assert await client.feedback.iter(kind="pairwise").save(tmp_path / "feedback.jsonl") == 4
        assert (await client.trajectories.import_file(tmp_path / "list.jsonl", keep_good=True)).rejected
        with pytest.raises(Refused, match="404"):
            await client.runs.get(1)

    with_async(use)


def test_a_job_is_waited_for(with_async: Any, workers: None) -> None:
    async def use(client: AsyncClient) -> None:
        await client.feedback.add([comparison(number) for number in range(4)])
        version = await client.datasets.wait(await client.datasets.freeze("answers"), timeout=30)
        run = await client.runs.wait(await client.runs.start(version, recipe="bradley-terry"), timeout=30)
        assert (await client.models.get("answers")).run == run.run
        async with client.rewards("desk-answers") as rewards:
            assert rewards is not None

    with_async(use)
