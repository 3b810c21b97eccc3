"""What a user's checker sees: `mypy --strict` over scripts that use the client, one good and one with mistakes."""

import subprocess
import sys
from pathlib import Path

import pytest
import touchstone_client

ROOT = Path(__file__).parents[2]
pytestmark = pytest.mark.slow  # 10 to 30 s of CPU

GOOD = """
from collections.abc import Mapping
from typing import Any

from touchstone_client import AsyncClient, Client


def use(client: Client, records: list[Mapping[str, Any]]) -> float | None:
    created: int = client.trajectories.import_file(records, format="openai").created
    reward: float | None = client.trajectories.list(task="a").take(1)[0].outcome.reward
    for record in client.feedback.iter(kind="pairwise"):
        name: str = record.annotator
    run = client.runs.wait(client.runs.start(client.datasets.freeze("a"), recipe="auto"), timeout=5, progress=True)
    state: str = run.state
    active: int | None = client.endpoints.deploy(client.models.get("a"), "a").active
    scores: list[float] = client.rewards("a").score([{"text": "x"}]).rewards
    print(created, name, state, active, scores)
    return reward


async def use_async(client: AsyncClient) -> int:
    run = await client.runs.get(3)
    number: int = run.run
    entries = [entry.id async for entry in client.trajectories.list()]
    first: list[str] = entries
    campaign = await client.campaigns.create("a", ["pairwise"])
    print(first, campaign.progress.completed, await client.feedback.iter().to_pandas())
    return number
"""
GUIDES = {"guide.py": "docs/client.md", "readme.py": "client/README.md"}
MISTAKES = {
    "client.runs.get()": "Too few arguments",
    "client.runs.start('a', seeds=3)": 'Unexpected keyword argument "seeds"',
    "client.runs.get(3).nothing": 'has no attribute "nothing"',
    "client.trajectories.list(task=3)": "has incompatible type",
    "async_client.runs.get(3).state": 'has no attribute "state"',
}


def check(folder: Path) -> str:
    """What mypy writes of the scripts in a folder."""
    package = Path(touchstone_client.__file__).parent
    assert (package / "py.typed").exists()
    command = [sys.executable, "-m", "mypy", "--strict", "--cache-dir", str(folder / "cache"), "."]
    environment = {"MYPYPATH": str(package.parent), "PATH": "", "MYPY_FORCE_COLOR": "0"}
    done = subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True, check=False)
    return done.stdout + done.stderr


def python_of(guide: Path) -> str:
    """The examples of a guide that make a `Client`, and those after them."""
    blocks = [part.partition("```")[0] for part in guide.read_text().split("```python\n")[1:]]
    first = next(place for place, block in enumerate(blocks) if "import Client" in block)
    return "".join(blocks[first:] if guide.name == "client.md" else blocks[first : first + 1])


def test_scripts_are_checked_strictly(tmp_path: Path) -> None:
    head = "from touchstone_client import AsyncClient, Client\n\n\n"
    lines = "".join(f"    {line}\n" for line in MISTAKES)
    (tmp_path / "good.py").write_text(GOOD)
    (tmp_path / "bad.py").write_text(
        f"{head}def use(client: Client, async_client: AsyncClient) -> None:\n{lines}"
    )
    for name, guide in GUIDES.items():
        (tmp_path / name).write_text(python_of(ROOT / guide))
    found = [line for line in check(tmp_path).splitlines() if ": error: " in line]
    assert [line for line in found if not line.startswith("bad.py:")] == []
    for number, message in enumerate(MISTAKES.values(), 5):
        assert any(line.startswith(f"bad.py:{number}: ") and message in line for line in found), found
    assert len(found) == len(MISTAKES)
