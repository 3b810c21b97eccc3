"""That a backup, restored into an empty home, is the installation it was made of."""

import hashlib
import json

import httpx
import pytest

from tests.core.homes import open_home
from tests.faults import scenario
from tests.faults.drivers import TOLERANCE
from tests.faults.prepare import PROJECT
from tests.faults.scenario import Installation, await_endpoint
from tests.faults.stack import Stack
from tests.migrated import fill_home

JUDGEMENTS = (
    "annotation",
    "preference",
    "comment",
    "assignment",
    "item",
    "itemtrajectory",
    "annotator",
    "campaign",
)


def check_restored(installed: Installation) -> None:
    """Every judgement by hash, the same rewards to TOLERANCE, keys that work, and room for new rows."""
    source, key = installed.stack, installed.told["key"]
    file = source.home / "all.backup"
    made = source.call("backup", str(file))
    assert made["hash"] and file.stat().st_mode & 0o777 == 0o600
    with open_home() as home:
        fill_home(home)
        stack = Stack(home)
        try:
            result = stack.call("restore", str(file))
            assert (result["rows"], result["artifacts"]) == (made["rows"], made["artifacts"])
            stack.start()
            for name in JUDGEMENTS:
                table = f"annotation_{name}"
                assert _hash_of(stack, table) == _hash_of(source, table), table
            await_endpoint(stack, key)
            assert scenario.rewards(stack, key) == pytest.approx(scenario.rewards(source, key), abs=TOLERANCE)
            text = '{"prompt": "new", "response": "indeed"}\n'
            url = f"{stack.url}/api/v1/projects/{PROJECT}/trajectories?format=prompt-response"
            answer = httpx.post(url, content=text, headers=_bearer(key), trust_env=False, timeout=30)
            assert answer.json()["created"] == 1
            with pytest.raises(AssertionError, match="This installation is not empty"):
                stack.call("restore", str(file))
        finally:
            stack.destroy()


def _bearer(key: str) -> dict[str, str]:
    return {"Authorization": f"Bearer {key}"}


def _hash_of(stack: Stack, table: str) -> str:
    rows = stack.query(f"SELECT to_jsonb(t)::text FROM {table} t ORDER BY id")
    assert rows or table.endswith("comment"), table
    return hashlib.sha256(json.dumps(rows).encode()).hexdigest()
