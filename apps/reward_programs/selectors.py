"""Reads of reward programs."""

import hashlib

from django.db.models import QuerySet
from msgspec import structs

from apps.accounts.models import Project
from apps.core.errors import DomainError, NotFound
from apps.core.version_names import parse_name
from apps.reward_programs.models import RewardProgramJob, RewardProgramVersion
from apps.trajectories.filter_queries import filter_trajectories
from workers.schema.endpoints import EndpointSpec
from workers.schema.program_part import PythonProgram, hash_of_code


def list_reward_programs(project: Project) -> QuerySet[RewardProgramVersion]:
    """Newest first."""
    rows = RewardProgramVersion.objects.filter(project=project, deleted_at=None)
    return rows.select_related("project", "created_by", "accepted_by").order_by("-pk")


def get_reward_program(project: Project, pk: int) -> RewardProgramVersion:
    """Raises NotFound."""
    program = list_reward_programs(project).filter(pk=pk).first()
    if program is None:
        raise NotFound(f"There is no version {pk} of a reward program in this project.")
    return program


def get_reward_program_job(project: Project, pk: int) -> RewardProgramJob:
    """Raises NotFound."""
    rows = RewardProgramJob.objects.filter(project=project)
    job = rows.select_related("program__project", "project", "llm_connection").filter(pk=pk).first()
    if job is None:
        raise NotFound(f"There is no job {pk} of a reward program in this project.")
    return job


def sampled_keys(job: RewardProgramJob, filter: str, sample: int) -> list[int]:
    """Of trajectories, drawn at random; the same ones for the same job."""
    keys = filter_trajectories(job.project, filter).order_by().values_list("pk", flat=True)
    return sorted(keys, key=lambda key: hashlib.sha256(f"{job.number}-{key}".encode()).digest())[:sample]


def reward_program_named(text: str, *, project: Project) -> RewardProgramVersion:
    """Of `name@version`, or of `name`, which means the newest. Raises DomainError."""
    named = parse_name(text, project=project.slug)
    rows = list_reward_programs(project).filter(name=named.name)
    found = rows.filter(version=named.version).first() if named.version else rows.order_by("-version").first()
    if found is None:
        raise DomainError(f"There is no reward program {named}.", status=404)
    return found


def part_with_code(part: PythonProgram, *, project: Project) -> PythonProgram:
    """With the full name, the code and its hash of the program that it names. Raises DomainError."""
    if part.program is None:
        return structs.replace(part, code_hash=hash_of_code(part.code or ""))
    program = reward_program_named(part.program, project=project)
    if part.code not in (None, program.code):
        raise DomainError(
            f"`code` is not that of {program}; leave it out, or store it as a new version of the program."
        )
    return structs.replace(part, program=str(program), code=program.code, code_hash=program.code_hash)


def require_deployable(spec: EndpointSpec, *, project: Project) -> None:
    """Raises DomainError for code that is no stored version, or one that was not accepted or had no dry run."""
    for index, part in enumerate(spec.components):
        if isinstance(part, PythonProgram) and (problem := _deploy_problem(part, project)):
            raise DomainError(problem, pointer=f"/components/{index}/program", status=422)


def _deploy_problem(part: PythonProgram, project: Project) -> str | None:
    if part.program is None:
        return (
            f"The code of {part.name} is not stored; store it as a reward program, let a dry run of it pass, and name "
            "it here as name@version."
        )
    program = reward_program_named(part.program, project=project)
    # Not to be deleted before this transaction ends.
    program = RewardProgramVersion.objects.select_for_update(no_key=True, of=("self",)).get(pk=program.pk)
    if program.deleted_at is not None:
        return f"{program} was deleted."
    if program.accepted_at is None:
        return f"{program} is a draft of a language model; read it and accept it first."
    if program.dry_run_passed_at is None:
        return f"No dry run of {program} has passed; start one on stored trajectories and correct what fails."
    return None
