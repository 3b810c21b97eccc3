"""bulk PROJECT score|embed|judge|induce|index: a bulk job over stored trajectories."""

import time
from pathlib import Path
from typing import Any

from django.core.management.base import CommandParser

from apps.accounts.services import project_for
from apps.bulk import services
from apps.bulk.estimates import BulkEstimate, estimate_bulk_job
from apps.bulk.exports import write_results
from apps.bulk.models import BulkJob
from apps.bulk.selectors import get_bulk_job, job_progress
from apps.core.commands import CommandFailed, TouchstoneCommand
from apps.core.errors import DomainError
from apps.judges.selectors import get_judge_by_name
from apps.metrics.selectors import get_induction
from apps.rewards.selectors import endpoint_of
from apps.training.selectors import model_named

_POLL = 0.5


class Command(TouchstoneCommand):
    help = "Score, embed or judge the stored trajectories of a project on `worker gpu` processes, each exactly once."

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("project")
        parser.add_argument("work", choices=[*BulkJob.Work.values, "resume"], help="resume: go on with --job")
        parser.add_argument(
            "--model", help="for score and embed: name or name@version; by default the newest version"
        )
        parser.add_argument("--judge", help="for judge: the name of the judge")
        parser.add_argument(
            "--induction", type=int, metavar="ID", help="for induce: the number of the induction"
        )
        parser.add_argument("--endpoint", metavar="NAME", help="for endpoint: the name of the endpoint")
        parser.add_argument(
            "--filter",
            default="",
            metavar="QUERY",
            help="the filter of the trajectory list as in its address, such as agent=desk&success=no; without: all",
        )
        parser.add_argument(
            "--steps", action="store_true", help="for score: keep the rewards of agent steps too"
        )
        parser.add_argument(
            "--estimate", action="store_true", help="only say how many, how long and what it costs"
        )
        parser.add_argument("--job", type=int, metavar="ID", help="for resume: the number of the job")
        parser.add_argument("--wait", action="store_true", help="follow the job to its end")
        parser.add_argument(
            "--out", type=Path, metavar="FILE", help="wait, then write the results: .jsonl or .parquet"
        )

    def run(
        self, *, project: str, work: str, job: int | None, estimate: bool, **options: Any
    ) -> dict[str, Any]:
        owner = project_for(project)
        if work == "resume":
            if job is None:
                raise DomainError("Name the job to go on with: --job ID.")
            found = get_bulk_job(owner, job)
            services.resume_bulk_job(job=found, by=None)
        else:
            named: dict[str, Any] = {
                "project": owner,
                "work": work,
                "filter": options["filter"],
                "model": model_named(options["model"], project=owner) if options["model"] else None,
                "judge": get_judge_by_name(owner, options["judge"]) if options["judge"] else None,
                "induction": get_induction(owner, options["induction"]) if options["induction"] else None,
                "endpoint": endpoint_of(owner, options["endpoint"]) if options["endpoint"] else None,
            }
            foreseen = estimate_bulk_job(**named)
            self.say(estimate_in_words(foreseen))
            if estimate:
                cost = None if foreseen.cost is None else float(foreseen.cost)
                return {"items": foreseen.items, "tokens": foreseen.tokens} | {
                    "seconds": foreseen.seconds,
                    "cost": cost,
                    "basis": foreseen.basis,
                }
            found = services.create_bulk_job(**named, with_steps=options["steps"], by=None)
        return self._follow(found, wait=options["wait"] or options["out"] is not None, out=options["out"])

    def _follow(self, job: BulkJob, *, wait: bool, out: Path | None) -> dict[str, Any]:
        if not wait:
            self.say(f"The {job} works on {job.item_count:,} trajectories.")
            return _summary(job)
        with self.progress(job.item_count, str(job)) as bar:
            while not job.is_finished and job.state != BulkJob.State.PAUSED:
                time.sleep(_POLL)
                job.refresh_from_db()
                now = job_progress(job)
                bar.update(now.done, total=now.total, note=f"{now.per_second:,.1f} items/s")
        result = _summary(job)
        if job.state != BulkJob.State.SUCCEEDED:
            raise CommandFailed(f"The {job} is {job.state}. {job.error}".strip(), result=result)
        if out is not None:
            result["written"] = write_results(job, out)
            self.say(f"Wrote {result['written']:,} results to {out}.")
        return result


def estimate_in_words(estimate: BulkEstimate) -> str:
    parts = [f"{estimate.items:,} trajectories of about {estimate.tokens:,} tokens"]
    if estimate.seconds is not None:
        parts.append(f"{estimate.seconds / 60:,.1f} minutes of one worker")
    if estimate.cost is not None:
        parts.append(f"a cost of about {estimate.cost:,}")
    return f"{', '.join(parts)} ({estimate.basis})."


def _summary(job: BulkJob) -> dict[str, Any]:
    now = job_progress(job)
    return {
        "job": job.pk,
        "state": job.state,
        "items": job.item_count,
        "done": now.done,
        "problems": now.problems,
        "missing": now.missing,
        "tokens": now.tokens,
        "per_second": round(now.per_second, 2),
    }
