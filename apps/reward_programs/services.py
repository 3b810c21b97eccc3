"""Reward programs are stored, accepted, and tried on stored trajectories."""

import msgspec
from django.db import transaction
from django.db.models import Max
from django.utils import timezone

from apps.accounts.actors import Actor, person_of, require_person
from apps.accounts.models import Project
from apps.accounts.services import record_audit
from apps.core.errors import Conflict, DomainError
from apps.core.jobs import job_queue
from apps.core.version_names import check_slug
from apps.llm.models import LLMConnection
from apps.reward_programs import program_uses
from apps.reward_programs.models import RewardProgramJob, RewardProgramVersion
from apps.trajectories.filters import parse_filter
from workers.errors import InvalidRecord
from workers.programs.source import MOST_SECONDS, read_program

ADVANCE = "apps.reward_programs.tasks.advance_reward_programs"
DEFAULT_SAMPLE, MAX_SAMPLE = 200, 5000
LONGEST_NOTE = 4000
ENDED = (job_queue.JobState.SUCCEEDED, job_queue.JobState.FAILED, job_queue.JobState.CANCELLED)


class DryRunOptions(msgspec.Struct, frozen=True, kw_only=True):
    """filter: of trajectories. sample: how many of them at most, drawn at random. seconds: for each."""

    filter: str = ""
    sample: int = DEFAULT_SAMPLE
    seconds: float = 1.0


class DraftOptions(msgspec.Struct, frozen=True, kw_only=True):
    """task: what the reward is to pay for. comments: of people, one on each line. filter: of the trajectories that
    drafts are tried on, such as failing ones. revises: the key of a version that is revised by the comments.
    stored_comments: whether the comments that are stored on the trajectories of the filter count too. excerpts: whether
    the critic reads excerpts of them."""

    task: str
    comments: str = ""
    filter: str = ""
    revises: int | None = None
    stored_comments: bool = False
    excerpts: bool = True


@transaction.atomic
def create_reward_program(
    *, project: Project, name: str, code: str, note: str = "", by: Actor, is_draft: bool = False
) -> RewardProgramVersion:
    """The next version of the program of this name. is_draft: a language model wrote it; so is code of a draft that
    waits, where no person stores it. Raises DomainError for code that cannot be a reward program, and Conflict where
    the newest version has the same code."""
    check_slug(name, what="reward program")
    if len(note) > LONGEST_NOTE:
        raise DomainError(f"The note may have {LONGEST_NOTE:,} characters; shorten it.", pointer="/note")
    try:
        read = read_program(code)
    except InvalidRecord as error:
        raise DomainError(error.message[0].upper() + error.message[1:], pointer="/code", status=422) from None
    Project.objects.select_for_update().get(pk=project.pk)  # so that versions have no gap
    own = RewardProgramVersion.objects.filter(project=project, name=name)
    newest = own.filter(deleted_at=None).order_by("-version").first()
    if newest is not None and newest.code_hash == read.hash:
        raise Conflict(f"{newest} has the same code.", pointer="/code")
    drafts = RewardProgramVersion.objects.filter(project=project, code_hash=read.hash)
    waiting = drafts.filter(origin=RewardProgramVersion.Origin.DRAFT, accepted_at=None)
    is_draft = is_draft or (person_of(by) is None and waiting.exists())
    number = own.aggregate(last=Max("version"))["last"] or 0
    program = RewardProgramVersion.objects.create(
        project=project,
        name=name,
        version=number + 1,
        code=code,
        code_hash=read.hash,
        note=note,
        origin=RewardProgramVersion.Origin.DRAFT if is_draft else RewardProgramVersion.Origin.PERSON,
        created_by=person_of(by),
        accepted_at=None if is_draft else timezone.now(),
        accepted_by=None if is_draft else person_of(by),
    )
    record_audit(
        project=project,
        actor=by,
        verb="reward_program.created",
        target=program.short_name,
        data={"code_hash": read.hash, "origin": program.origin},
    )
    return program


@transaction.atomic
def accept_reward_program(*, program: RewardProgramVersion, by: Actor) -> RewardProgramVersion:
    """A person has read a draft. Raises Conflict where that was said before, Forbidden where no person says it."""
    locked = RewardProgramVersion.objects.select_for_update().select_related("project").get(pk=program.pk)
    if locked.accepted_at is not None:
        raise Conflict(f"{locked} is accepted already.")
    person = require_person(by, "accept the draft of a language model")
    locked.accepted_at, locked.accepted_by = timezone.now(), person
    locked.save(update_fields=["accepted_at", "accepted_by"])
    record_audit(
        project=locked.project,
        actor=by,
        verb="reward_program.accepted",
        target=locked.short_name,
        data={"code_hash": locked.code_hash},
    )
    return locked


@transaction.atomic
def delete_reward_program(*, program: RewardProgramVersion, by: Actor) -> None:
    """Its code, note and jobs; its number is not given again. Raises Conflict where an endpoint serves it, or a job of
    it has not ended."""
    locked = RewardProgramVersion.objects.select_for_update().select_related("project").get(pk=program.pk)
    users = program_uses.endpoints_that_serve(locked)
    if users:
        raise Conflict(
            f"{locked} cannot be deleted: the endpoint{'s' if len(users) > 1 else ''} {', '.join(users[:5])} "
            f"{'serve' if len(users) > 1 else 'serves'} it. Deploy a revision without it first."
        )
    if locked.jobs.exclude(state__in=ENDED).exists():
        raise Conflict(f"A job of {locked} has not ended. Wait for it, or cancel it.")
    locked.jobs.all().delete()
    locked.code, locked.note, locked.deleted_at = "", "", timezone.now()
    locked.save(update_fields=["code", "note", "deleted_at"])
    record_audit(
        project=locked.project,
        actor=by,
        verb="reward_program.deleted",
        target=locked.short_name,
        data={"code_hash": locked.code_hash},
    )


@transaction.atomic
def start_dry_run(
    *, program: RewardProgramVersion, options: DryRunOptions | None = None, by: Actor
) -> RewardProgramJob:
    """Queue it. Raises DomainError."""
    options = options or DryRunOptions()
    if not 1 <= options.sample <= MAX_SAMPLE:
        raise DomainError(f"The sample is {options.sample}; choose 1 to {MAX_SAMPLE:,}.", pointer="/sample")
    if not 0.01 <= options.seconds <= MOST_SECONDS:
        raise DomainError(f"Choose 0.01 to {MOST_SECONDS:g} seconds.", pointer="/seconds")
    options = msgspec.structs.replace(options, filter=parse_filter(options.filter).query)
    job = RewardProgramJob.objects.create(
        project=program.project,
        kind=RewardProgramJob.Kind.DRY_RUN,
        name=program.name,
        program=program,
        options=msgspec.to_builtins(options),
        created_by=person_of(by),
    )
    job.refresh_from_db(fields=["number"])
    record_audit(
        project=program.project,
        actor=by,
        verb="reward_program.dry_run_started",
        target=program.short_name,
        data=job.options,
    )
    job_queue.nudge_on_commit(ADVANCE)
    return job


@transaction.atomic
def start_draft(
    *, project: Project, name: str, llm_connection: LLMConnection, options: DraftOptions, by: Actor
) -> RewardProgramJob:
    """Queue a language model's draft of the next version of a program. Raises DomainError."""
    check_slug(name, what="reward program")
    if not 3 <= len(options.task.strip()) <= LONGEST_NOTE:
        raise DomainError(f"Describe the task in 3 to {LONGEST_NOTE:,} characters.", pointer="/task")
    if len(options.comments) > LONGEST_NOTE:
        raise DomainError(f"Comments may have {LONGEST_NOTE:,} characters.", pointer="/comments")
    if llm_connection.project_id != project.pk:
        raise DomainError(
            "The LLM connection belongs to another project.", pointer="/llm_connection", status=404
        )
    own = RewardProgramVersion.objects.filter(project=project, name=name)
    if options.revises is not None and not own.filter(pk=options.revises, deleted_at=None).exists():
        raise DomainError(
            f"The program {name} has no version {options.revises}.", pointer="/revises", status=404
        )
    options = msgspec.structs.replace(options, filter=parse_filter(options.filter).query)
    job = RewardProgramJob.objects.create(
        project=project,
        kind=RewardProgramJob.Kind.DRAFT,
        name=name,
        llm_connection=llm_connection,
        options=msgspec.to_builtins(options),
        created_by=person_of(by),
    )
    job.refresh_from_db(fields=["number"])
    record_audit(
        project=project,
        actor=by,
        verb="reward_program.draft_started",
        target=name,
        data={
            "llm_connection": llm_connection.name,
            "filter": options.filter,
            "excerpts": options.excerpts,
            "stored_comments": options.stored_comments,
        },
    )
    job_queue.nudge_on_commit(ADVANCE)
    return job


def record_passed_dry_run(job: RewardProgramJob) -> None:
    """What it tried may be deployed from now on."""
    assert job.program is not None
    RewardProgramVersion.objects.filter(pk=job.program.pk, dry_run_passed_at=None).update(
        dry_run_passed_at=timezone.now()
    )
