"""A project of agents that send parcels, and a language model of rules that answers questions about them."""

import json
from collections.abc import Iterator
from typing import Any

import pytest

from apps.accounts.models import Project
from apps.llm.models import LLMConnection
from apps.llm.services import LLMConnectionSpec, create_llm_connection
from apps.trajectories.services import store_trajectories
from tests.judges.parcels import run
from tests.workers.llm.scripted import Body, Script, scripted
from workers.schema import parse_item

LOST, SENT = "a parcel is lost", "all parcels arrive"


def question_answer(body: Body) -> str:
    """Of a trajectory: which steps came back as failed. Of labels: those about loss, and the others."""
    lines = body["messages"][1]["content"].split("\n")
    read = [json.loads(line) for line in lines if line.startswith("{")]
    if any("answer" in line for line in read):
        lost = [line["answer"] for line in read if "lost" in line["text"]]
        rest = [line["answer"] for line in read if line["answer"] not in lost]
        groups = (("Parcels lost", lost), ("Parcels sent", rest))
        return json.dumps(
            {
                "categories": [
                    {"name": name, "definition": f"{name}, and nothing else.", "labels": labels}
                    for name, labels in groups
                    if labels
                ]
            }
        )
    steps = [line["step"] for line in read if "failed" in line.get("got back", "")]
    if not any("got back" in line for line in read):
        return json.dumps({"explanation": "No parcel is sent.", "steps": [], "label": None})
    label = f"{LOST} {len(steps)} times" if steps else SENT
    return json.dumps(
        {
            "explanation": f"{len(steps)} parcels failed.",
            "steps": steps[:5] or [len(read) - 2],
            "label": label,
        }
    )


@pytest.fixture
def script(settings: Any) -> Script:
    settings.OUTGOING_ALLOW = ["127.0.0.0/8"]
    return Script(question_answer)


@pytest.fixture
def parcels(project: Project) -> Project:
    """Of 12 trajectories 8 lose a parcel, 4 none; one more sends nothing."""
    stored = [parse_item(run(f"task-{number}", number % 3)).content for number in range(12)]
    talk = [{"role": "user", "content": "Hello."}, {"role": "assistant", "content": "Good morning."}]
    stored.append(parse_item({"messages": talk}).content)
    store_trajectories(project=project, trajectories=stored, source_format="openai")
    return project


@pytest.fixture
def connection(parcels: Project, script: Script) -> Iterator[LLMConnection]:
    with scripted(script) as url:
        spec = LLMConnectionSpec(name="rules", base_url=url, model="rules")
        yield create_llm_connection(project=parcels, spec=spec, key="sk-canary", by=None)


@pytest.fixture(autouse=True)
def quick_children(forked_children: None) -> None:
    """As all of these are."""
