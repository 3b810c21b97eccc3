"""A project about flights and pizza, indexed by the real encoder in a child process."""

import pytest

from apps.accounts.models import Project
from apps.bulk.running import work_on_chunks
from apps.bulk.services import create_bulk_job
from apps.semantic_search.models import TrajectoryPassage
from apps.trajectories.services import store_trajectories
from workers.schema import parse_item

FLIGHTS = ("Oslo", "Paris", "Rome", "Cairo")
PIZZA = ("olives", "ham", "mushrooms", "peppers")


def stored(project: Project) -> list[int]:
    talks = [
        (f"Cancel my plane ticket to {city}.", f"Your flight to {city} was cancelled and the fare refunded.")
        for city in FLIGHTS
    ] + [
        (f"I want a pizza with {topping}.", f"A pizza with {topping} is in the oven and will be delivered.")
        for topping in PIZZA
    ]
    trajectories = [
        parse_item(
            {"messages": [{"role": "user", "content": asked}, {"role": "assistant", "content": answered}]}
        ).content
        for asked, answered in talks
    ]
    return store_trajectories(project=project, trajectories=trajectories, source_format="openai")


@pytest.fixture
def indexed(project: Project, forked_children: None) -> Project:
    stored(project)
    job = create_bulk_job(project=project, work="index")
    work_on_chunks()
    job.refresh_from_db()
    assert job.state == "succeeded", job.error
    assert TrajectoryPassage.objects.count() == 8 and not job.results.exists()
    return project
