"""`campaigns`, `datasets`, `runs`, `models`, `endpoints`: lists as tables."""

from argparse import ArgumentParser
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from touchstone_client.cli.command import Command, Session
from touchstone_client.cli.commands.serving import models_of
from touchstone_client.cli.statuses import UsageFailed
from touchstone_client.client import Client
from touchstone_client.listings import Listing
from touchstone_client.resources.campaigns import Campaign
from touchstone_client.resources.datasets import DatasetVersion
from touchstone_client.resources.endpoints import Endpoint
from touchstone_client.resources.training import RewardModel, TrainingRun

_SHOWN = 50


@dataclass(frozen=True, slots=True)
class TableList:
    """heads: of the columns. row: of an entry."""

    entries: Callable[[Client], Listing[Any]]
    heads: Sequence[str]
    row: Callable[[Any], Sequence[Any]]

    def run(self, session: Session) -> None:
        limit, output = session.options.limit, session.output
        if limit < 1:
            raise UsageFailed("--limit must be at least 1.")
        found = self.entries(session.client).take(limit + 1)
        shown = found[:limit]
        if output.as_json:
            output.result({"items": [entry.to_dict() for entry in shown], "more": len(found) > limit})
            return
        output.table(self.heads, [self.row(entry) for entry in shown])
        if len(found) > limit:
            output.note(f"These are the newest {limit}; --limit N shows more.")


def _add(parser: ArgumentParser) -> None:
    parser.add_argument(
        "--limit", type=int, default=_SHOWN, metavar="N", help=f"entries, newest first ({_SHOWN})"
    )


def _campaign(campaign: Campaign) -> Sequence[Any]:
    progress = campaign.progress
    done = f"{progress.completed} of {progress.required}"
    return (
        campaign.name,
        campaign.state,
        ", ".join(campaign.feedback_types),
        progress.items,
        done,
        _time(campaign.created),
    )


def _dataset(version: DatasetVersion) -> Sequence[Any]:
    return (
        version.name,
        version.state,
        sum(version.records.values()),
        version.usable_pairs,
        _time(version.created),
    )


def _run(run: TrainingRun) -> Sequence[Any]:
    done, total = run.progress.get("done"), run.progress.get("total")
    steps = f"{done} of {total}" if done is not None and total else ""
    return run.run, run.state, run.recipe, run.dataset, run.model, steps, _time(run.created)


def _model(model: RewardModel) -> Sequence[Any]:
    preference = (model.report or {}).get("preference")
    accuracy = preference.get("accuracy") if isinstance(preference, Mapping) else None
    shown = f"{accuracy:.1%}" if isinstance(accuracy, int | float) else ""
    return model.model, model.run, model.dataset, shown, _time(model.created)


def _endpoint(endpoint: Endpoint) -> Sequence[Any]:
    state = f"off: {endpoint.switched_off_reason}" if endpoint.switched_off else "on"
    return endpoint.endpoint, endpoint.active, ", ".join(models_of(endpoint.spec)), state


def _time(at: datetime | None) -> str:
    return "" if at is None else at.isoformat(" ", "minutes")[:16]


_LISTS = {
    "campaigns": TableList(
        lambda client: client.campaigns.list(),
        ("NAME", "STATE", "FEEDBACK", "ITEMS", "ANNOTATIONS", "CREATED"),
        _campaign,
    ),
    "datasets": TableList(
        lambda client: client.datasets.list(), ("NAME", "STATE", "RECORDS", "PAIRS", "CREATED"), _dataset
    ),
    "runs": TableList(
        lambda client: client.runs.list(),
        ("RUN", "STATE", "RECIPE", "DATASET", "MODEL", "STEPS", "CREATED"),
        _run,
    ),
    "models": TableList(
        lambda client: client.models.list(), ("MODEL", "RUN", "DATASET", "ACCURACY", "CREATED"), _model
    ),
    "endpoints": TableList(
        lambda client: client.endpoints.list(), ("ENDPOINT", "REVISION", "MODELS", "STATE"), _endpoint
    ),
}
_HELP = {"datasets": "dataset versions", "runs": "training runs"}
COMMANDS = tuple(
    Command(name, f"List {_HELP.get(name, name)}, newest first", _add, each.run)
    for name, each in _LISTS.items()
)
