"""`freeze`, `train`, `logs`: dataset versions and training runs."""

import time
from argparse import ArgumentParser
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from touchstone_client.cli.command import Command, Session
from touchstone_client.cli.output import Output
from touchstone_client.cli.statuses import CommandFailed
from touchstone_client.client import Client
from touchstone_client.errors import JobFailed
from touchstone_client.jobs import UNFINISHED
from touchstone_client.resources.training import RunEvent, TrainingRun

_CHANCE = 0.5  # the accuracy, or AUC, of guessing
_POLL = 1.0  # seconds between looks at a run that is followed
_HIDDEN = ("progress",)  # parts of an event that are for pages
_FIRST = ("step", "epoch", "message", "loss")


def _add_freeze(parser: ArgumentParser) -> None:
    parser.add_argument("name", help="of the dataset")
    parser.add_argument("--campaign", action="append", help="only feedback of this campaign; may be repeated")
    parser.add_argument("--kind", action="append", help="only this kind; may be repeated")
    parser.add_argument("--origin", action="append", help="only of this origin; may be repeated")
    parser.add_argument("--since", metavar="TIME", help="only what changed since this time (ISO 8601)")
    parser.add_argument("--seed", type=int, help="of the split by task")
    parser.add_argument("--wait", action="store_true", help="wait until it is frozen")


def _freeze(session: Session) -> None:
    options, datasets = session.options, session.client.datasets
    version = datasets.freeze(
        options.name,
        campaigns=options.campaign,
        kinds=options.kind,
        origins=options.origin,
        since=options.since,
        seed=options.seed,
    )
    session.output.say(f"{version.name} is being frozen.")
    if options.wait:
        try:
            with session.output.progress(f"Freezing {version.name}") as progress:
                version = datasets.wait(version, progress=progress)
        except JobFailed as error:
            raise CommandFailed(f"{error}.".replace("..", "."), result=error.job.to_dict()) from None
        session.output.say(f"{version.name}: {sum(version.records.values()):,} records, hash {version.hash}.")
    session.output.result(version.to_dict())


def _add_train(parser: ArgumentParser) -> None:
    parser.add_argument(
        "--dataset", required=True, metavar="NAME", help="name@version; by default the newest"
    )
    parser.add_argument(
        "--recipe", metavar="NAME|FILE.toml", help="a recipe's name, or a TOML file; by default auto"
    )
    parser.add_argument("--name", help="of the model; by default the dataset's name")
    parser.add_argument("--parent", metavar="MODEL", help="a model of the project, to fine-tune")
    parser.add_argument("--seed", type=int)
    parser.add_argument(
        "--track", action="append", metavar="TRACKER", help="an experiment tracker; may be repeated"
    )
    parser.add_argument("--on", metavar="LAUNCHER", help="local, slurm, kubernetes or ray; by default local")
    parser.add_argument("--hosts", type=int, help="of a cluster; by default one")
    parser.add_argument("--gpus", type=int, help="on each host of a cluster")
    parser.add_argument("--wait", action="store_true", help="wait until the run has ended")


def _train(session: Session) -> None:
    options, runs, output = session.options, session.client.runs, session.output
    run = runs.start(
        options.dataset,
        recipe=_recipe(options.recipe),
        name=options.name,
        seed=options.seed,
        parent=options.parent,
        track=options.track,
        on=options.on,
        hosts=options.hosts,
        gpus=options.gpus,
    )
    output.say(f"Run {run.run} on {run.dataset} is {run.state}.")
    if options.wait:
        try:
            with output.progress(f"Run {run.run}", " steps") as progress:
                run = runs.wait(run, progress=progress)
        except JobFailed as error:
            raise CommandFailed(
                f"{error} (see `touchstone logs {run.run}`)", result=_run_result(error.job)
            ) from None
        output.say(f"{run.model}: {_accuracy(run.report)}")
        output.say(_next_step(str(run.model), run.report or {}))
    else:
        output.say(f"Next: touchstone logs {run.run} --follow")
    output.result(_run_result(run))


def _next_step(model: str, report: dict[str, Any]) -> str:
    """A model that may be guessing is not worth an endpoint; the server asks for a reason to deploy it."""
    parts = [report[name] for name in ("preference", "outcome") if report.get(name)]
    measured: dict[str, Any] = parts[0] if parts else {}
    interval = measured.get("interval")
    if interval and interval[0] <= _CHANCE:
        return "Next: more feedback of more tasks, then freeze and train again; it is not shown to beat guessing."
    return f"Next: touchstone deploy {model} ENDPOINT"


def _recipe(given: str | None) -> str | None:
    """A file's text, or a name. Raises OSError."""
    return Path(given).read_text(encoding="utf-8") if given and given.endswith(".toml") else given


def _run_result(run: TrainingRun) -> dict[str, Any]:
    found = run.to_dict()
    return {
        name: found.get(name) for name in ("run", "state", "dataset", "recipe", "model", "report", "error")
    }


def _accuracy(report: Mapping[str, Any] | None) -> str:
    preference = (report or {}).get("preference")
    if not isinstance(preference, Mapping) or not isinstance(preference.get("accuracy"), int | float):
        return "trained; `touchstone models` lists it."
    return f"agrees with {preference['accuracy']:.1%} of {preference.get('n', '?')} held-out comparisons."


def _add_logs(parser: ArgumentParser) -> None:
    parser.add_argument("run", type=int, metavar="RUN", help="number of a training run")
    parser.add_argument("--follow", action="store_true", help="go on until the run has ended")
    parser.add_argument("--output", action="store_true", help="the end of what its process printed too")


def _logs(session: Session) -> None:
    options, client, output = session.options, session.client, session.output
    if output.as_json and not options.follow:
        log = client.runs.log(options.run)
        output.result(
            {**log.to_dict(), "events": [event.to_dict() for event in client.runs.events(options.run)]}
        )
        return
    for event in _events(client, options.run, follow=options.follow):
        if output.as_json:
            output.json_line(event)
        else:
            output.say(event_line(event))
    _conclude(client, options.run, output, printed=options.output, followed=options.follow)


def _events(client: Client, run: int, *, follow: bool) -> Iterator[RunEvent]:
    """follow: until the run has ended; its last events are there before its state is."""
    last = 0
    while True:
        ended = not follow or client.runs.get(run).state not in UNFINISHED
        for event in client.runs.events(run, after=last, page_size=1000):
            last = event.id
            yield event
        if ended:
            return
        time.sleep(_POLL)


def _conclude(client: Client, number: int, output: Output, *, printed: bool, followed: bool) -> None:
    run, log = client.runs.get(number), client.runs.log(number)
    if printed or run.state == "failed":
        output.say(log.log.rstrip() or "The process printed nothing.")
    end = f"Run {number} {run.state}" + (
        f": {run.error}" if run.error else f", model {run.model}" if run.model else ""
    )
    if followed:
        output.result(_run_result(run))
    if followed and run.state in ("failed", "cancelled"):
        raise CommandFailed(end)
    output.note(end)


def event_line(event: RunEvent) -> str:
    """`2026-01-31 12:00:00  step 3  loss 0.3333  validation.accuracy 0.8`."""
    at = event.at.isoformat(" ", "seconds")[:19] if event.at else ""
    first = {name: event.data[name] for name in _FIRST if name in event.data}
    return "  ".join([at, *(f"{name} {value}" for name, value in _flat(first | event.data))])


def _flat(data: Mapping[str, Any], inside: str = "") -> Iterator[tuple[str, str]]:
    for name, value in data.items():
        if name in _HIDDEN and not inside:
            continue
        if isinstance(value, Mapping):
            yield from _flat(value, f"{inside}{name}.")
        elif isinstance(value, float):
            yield f"{inside}{name}", f"{value:.4g}"
        elif value is not None:
            yield f"{inside}{name}", str(value)


COMMANDS = (
    Command("freeze", "Freeze the feedback there is into a dataset version", _add_freeze, _freeze),
    Command("train", "Train a reward model on a dataset version", _add_train, _train),
    Command("logs", "Show what a training run logged", _add_logs, _logs),
)
