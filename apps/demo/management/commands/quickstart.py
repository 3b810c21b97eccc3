"""`quickstart FILE`: from a file of feedback or traces to an endpoint that a trainer asks for rewards."""

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from django.conf import settings
from django.core.management.base import CommandParser

from apps.core.commands import CommandProgress, TouchstoneCommand
from apps.core.errors import DomainError
from apps.core.management.commands.up import add_address_arguments
from apps.core.processes import start_notices, supervisor
from apps.core.storage.storage_names import home_path
from apps.demo import quickstart
from apps.demo.feedback_files import FeedbackFile, look_at, parse_columns
from apps.rewards.trainer_snippets import TRAINERS, trainer_snippets
from apps.training.models import TrainingRun
from apps.training.report_summary import summarize
from workers.errors import RewardError
from workers.schema.patterns import TextPattern

_OTHER_CHARACTERS = TextPattern(r"[^A-Za-z0-9_-]+")  # than names of datasets and models have


class Command(TouchstoneCommand):
    help = (
        "From a file of comparisons, ratings or traces to a deployed reward, with the lines for your trainer."
    )
    needs_database = False

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument(
            "file", type=Path, help="JSON, JSON lines, CSV or Parquet; comparisons, ratings, chats or traces"
        )
        parser.add_argument(
            "--columns",
            default="",
            metavar="NAME=COLUMN,...",
            help="what your columns are, such as prompt=question,chosen=better,rejected=worse",
        )
        parser.add_argument("--project", default="quickstart", help="created if it is new")
        parser.add_argument("--name", help="of dataset, model and endpoint; by default the name of the file")
        parser.add_argument("--trainer", choices=TRAINERS, default="curl", help="whose lines to print")
        parser.add_argument("--recipe", help="by default auto, which compares a few on the training data")
        parser.add_argument(
            "--reason", default="", help="why to deploy although a check of the report failed"
        )
        parser.add_argument("--keep-good", action="store_true", help="leave out records that are wrong")
        parser.add_argument(
            "--exit", action="store_true", help="stop the processes that it started, instead of staying up"
        )
        add_address_arguments(parser)

    def run(
        self, *, file: Path, columns: str, host: str, port: int, rewards_port: int, exit: bool, **options: Any
    ) -> dict[str, Any]:
        self.seconds: dict[str, float] = {}
        name = options["name"] or _slug(file)
        with self._stage("Look at the file", "Nothing was imported."):
            found = look_at(file, parse_columns(columns))
            self.say(f"  {found.what}")
        try:
            with self._running(host, port, rewards_port) as stack:
                result = self._loop(stack, found, name, options)
                if stack is not None and not exit:
                    self.say(f"\nTouchstone is up at {stack.url}  (Ctrl-C stops it)\n")
                    for line in start_notices.start_lines(stack.url):
                        self.say(f"{line}\n")
                    stack.wait()
        except KeyboardInterrupt:
            self.say("stopped")
            return {"stopped": True}
        return result

    @contextmanager
    def _running(self, host: str, port: int, rewards_port: int) -> Iterator[supervisor.Stack | None]:
        """None: the installation runs already, on this home or elsewhere."""
        if not settings.DATABASE_IS_EMBEDDED or home_path(settings.REWARDS_ADDRESS_FILE).exists():
            with self._stage("Find the installation that runs", "`touchstone doctor` says what is missing."):
                self._require_database()
            yield None
            return
        with self._stage(
            "Start everything on this machine", "Its logs are in the folder of the home."
        ) as timed:
            running = supervisor.running(host=host, port=port, rewards_port=rewards_port, out=None)
            with running as stack:
                timed()
                yield stack

    def _loop(
        self, stack: supervisor.Stack | None, file: FeedbackFile, name: str, options: dict[str, Any]
    ) -> dict[str, Any]:
        again = "Correct it and run the command again: what is imported already is not imported twice."
        project = quickstart.find_project(options["project"])
        with (
            self._stage(f"Import it into the project {project.slug}", again),
            self._counting("records") as count,
        ):
            imported = quickstart.import_file(project, file, keep_good=options["keep_good"], progress=count)
            self.say(
                f"  {imported.created:,} new, {imported.duplicates:,} repeated or there already, "
                f"{len(imported.rejected):,} left out"
            )
        with (
            self._stage("Freeze the feedback, and hold some tasks out", again),
            self._counting("records") as count,
        ):
            dataset = quickstart.freeze(project, name, progress=count)
            kinds = ", ".join(f"{number:,} {kind}" for kind, number in dataset.records.items() if number)
            self.say(
                f"  {dataset}: {kinds or 'no feedback'}; {dataset.usable_pairs:,} usable pairs; "
                f"{sum(dataset.tasks.values()):,} tasks, {dataset.tasks.get('test', 0):,} held out"
            )
            quickstart.require_enough(dataset)
        with (
            self._stage(
                "Train, and measure on the held-out tasks",
                f"The page of the run has its log; `touchstone manage train {project.slug} --dataset {dataset} --wait` "
                "tries again.",
            ),
            self.progress(None, "  training") as progress,
        ):
            model = quickstart.train(
                dataset,
                recipe=options["recipe"],
                check=stack.check if stack else _nothing,
                tell=_shown_on(progress),
            )
        report = (model.training_run.report if model.training_run else None) or {}
        summary = summarize(report)
        self.say(f"  {model}: {summary.sentence}")
        with self._stage(
            f"Deploy it on the endpoint {name}",
            f"`touchstone manage deploy {model} {name} --reason TEXT` deploys it all the same; more feedback of "
            "more tasks usually helps.",
        ):
            revision = quickstart.put_on_endpoint(model, name, reason=options["reason"])
        url = stack.url if stack is not None else settings.PUBLIC_URL
        with self._stage("Ask for rewards with a new key", "`touchstone doctor` says what is missing."):
            key = quickstart.make_key(project)
            scored = quickstart.score_held_out(url, key, revision, dataset)
            self.say(
                f"  {scored.what} of a held-out task: {', '.join(f'{each:+.3f}' for each in scored.rewards)}"
            )
        total = sum(self.seconds.values())
        snippet = next(each for each in trainer_snippets(name, key) if each.name == options["trainer"])
        self.say(f"\nFrom the file to rewards: {total:.0f} s. {snippet.title}:\n\n{snippet.text}\n")
        return {
            "project": project.slug, "dataset": str(dataset), "records": dataset.records, "model": str(model),
            "tone": summary.tone, "summary": summary.sentence, "endpoint": name, "revision": revision.number,
            "url": url, "key": key, "rewards": scored.rewards, "seconds": self.seconds, "snippet": snippet.text,
        }  # fmt: skip

    @contextmanager
    def _stage(self, title: str, advice: str) -> Iterator[Callable[[], None]]:
        """Says what begins and how long it took; an error says what to do. Gives what ends the stage early."""
        number, began = len(self.seconds) + 1, time.monotonic()
        self.say(f"{number}. {title}")
        ended = False

        def end() -> None:
            nonlocal ended
            if not ended:
                ended = True
                self.seconds[title] = round(time.monotonic() - began, 1)
                self.say(f"  done in {self.seconds[title]:.1f} s")

        try:
            yield end
        except (DomainError, RewardError) as error:
            if ended:
                raise
            message = f"{number}. {title}: {error.message.rstrip('.')}. {advice}"
            raise DomainError(message, pointer=error.pointer) from error
        end()

    @contextmanager
    def _counting(self, what: str) -> Iterator[Callable[[int], None]]:
        with self.progress(None, f"  {what}") as progress:
            yield progress.update


def _slug(file: Path) -> str:
    """`My pairs (2).csv` as `My-pairs-2`."""
    stem = file.name.split(".")[0] if not file.is_dir() else file.name
    return _OTHER_CHARACTERS.sub("-", stem).strip("-")[:60] or "first"


def _shown_on(progress: CommandProgress) -> Callable[[TrainingRun], None]:
    def tell(run: TrainingRun) -> None:
        done = run.progress.get("done") or 0
        progress.update(
            int(done), total=run.progress.get("total"), note=run.progress.get("note") or run.state
        )

    return tell


def _nothing() -> None:
    pass
