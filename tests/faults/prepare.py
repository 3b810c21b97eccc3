"""`python -m tests.faults.prepare MODELS`: fills an installation and prints what the harness has to know, as JSON.

MODELS: a folder with the artifacts `a` and `b`, deployed as revisions 1 and 2 of the endpoint.
"""

import io
import itertools
import json
import os
import random
import sys
from pathlib import Path
from typing import Any

TASKS, RUNS = 24, 8
ANNOTATORS = 4
DATASET, ENDPOINT, PROJECT = "first", "faults", "faults"


def trajectory(task: int, run: int) -> dict[str, Any]:
    """A short dialogue whose quality shows in its words: good and bad ones of each task."""
    draw = random.Random(f"{task}/{run}")
    words = (
        ["gladly", "checked", "refunded", "confirmed"]
        if run % 2 == 0
        else ["no", "wait", "whatever", "later"]
    )
    said = " ".join(draw.choices(words, k=draw.randint(6, 20)))
    return {
        "task": f"task-{task}",
        "prompt": f"Please help me with my order {task}.",
        "response": f"{said} (order {task}, run {run})",
    }


def pairs() -> list[dict[str, Any]]:
    """Judgements: of each task every good run against every bad one, with a slip now and then."""
    found = []
    for task in range(TASKS):
        goods, bads = range(0, RUNS, 2), range(1, RUNS, 2)
        for good, bad in itertools.islice(itertools.product(goods, bads), 8):
            one = {
                "task": {"id": f"task-{task}"},
                "a": _item(task, good),
                "b": _item(task, bad),
                "choice": "b" if (task + good + bad) % 9 == 0 else "a",
                "annotator": f"early-{bad % 3}",
            }
            found.append(one)
    return found


def _item(task: int, run: int) -> dict[str, Any]:
    one = trajectory(task, run)
    return {"prompt": one["prompt"], "response": one["response"]}


def lines(records: list[dict[str, Any]]) -> io.BytesIO:
    return io.BytesIO("".join(json.dumps(record) + "\n" for record in records).encode())


def main(models: Path) -> dict[str, Any]:
    os.environ["DJANGO_SETTINGS_MODULE"] = "apps.config.settings"
    import django

    django.setup()
    from apps.accounts.models import Role
    from apps.accounts.services import create_api_key, create_project, create_user, set_member
    from apps.annotation.feedback.services import import_feedback
    from apps.annotation.services import ItemBuildOptions, build_items, create_campaign
    from apps.datasets.services import freeze_dataset
    from apps.datasets.version_builder import build_dataset_version
    from apps.rewards.services import deploy
    from apps.training.transfer import import_model

    researcher, password = create_user(email="rose@faults.example")
    project = create_project(slug=PROJECT, owner=researcher)
    people = []
    for number in range(ANNOTATORS):
        user, secret = create_user(email=f"ann{number}@faults.example")
        set_member(project=project, user=user, role=Role.ANNOTATOR, by=None)
        people.append({"email": user.email, "password": secret})
    result = import_feedback(project=project, stream=lines(pairs()), format="pairs", by=None)
    assert not result.rejected, result.rejected
    dataset_version = build_dataset_version(
        freeze_dataset(project=project, name=DATASET, by=None, claimed=True)
    )
    campaign = create_campaign(
        project=project, name="Faults", feedback_types=["pairwise", "comment"], by=researcher, overlap=2
    )
    build_items(campaign=campaign, choice=ItemBuildOptions(per_task=28, differ="any"))
    registered = {
        name: import_model(project=project, folder=models / name, name=name, by=None) for name in ("a", "b")
    }
    deploy(model=registered["a"], endpoint_name=ENDPOINT, project=project, by=None)
    _, key = create_api_key(
        project=project, scopes=["reward", "ingest", "train", "admin", "feedback:read"], by=None
    )
    return {
        "owner": {"email": researcher.email, "password": password},
        "annotators": people,
        "campaign": campaign.pk,
        "snapshot": {"hash": dataset_version.content_hash, "artifact": dataset_version.artifact},
        "models": {name: str(model) for name, model in registered.items()},
        "key": key,
    }


if __name__ == "__main__":
    print(json.dumps(main(Path(sys.argv[1]))))  # noqa: T201
