"""Judges are made and removed. What a judge is never changes: figures of agreement are about it as it is."""

from dataclasses import dataclass

from django.db import transaction
from django.db.models import ProtectedError

from apps.accounts.models import Project, User
from apps.accounts.services import record_audit
from apps.core.errors import Conflict, DomainError
from apps.judges.models import Judge
from apps.llm.models import LLMConnection
from apps.rubrics.models import Rubric
from apps.trajectories.services import replace_facts

MOST_SAMPLES = 16  # as workers.judge.rubric allows
# Of either mode.
PROMPTS = {1: "a reason, then the verdict", 2: "what speaks for and against is weighed first"}
LONGEST_GUIDELINES = 20_000


@dataclass(frozen=True, slots=True, kw_only=True)
class JudgeSpec:
    """See `Judge`."""

    name: str
    llm_connection: LLMConnection
    mode: str
    rubric: Rubric | None = None
    guidelines: str = ""
    samples: int = 1
    prompt: int = 1


@transaction.atomic
def create_judge(*, project: Project, spec: JudgeSpec, by: User | None) -> Judge:
    """Raises DomainError for what cannot be, Conflict for a name that is taken."""
    Project.objects.select_for_update(no_key=True).get(pk=project.pk)
    name = " ".join(spec.name.split())
    if not 1 <= len(name) <= 100:
        raise DomainError("Its name has 1 to 100 characters.", pointer="/name")
    if project.judges.filter(name=name).exists():
        raise Conflict(f"There is a judge {name} already.", pointer="/name")
    if spec.mode not in Judge.Mode.values:
        raise DomainError(f"A judge's mode is {' or '.join(Judge.Mode.values)}.", pointer="/mode")
    if spec.mode == Judge.Mode.SCORE and spec.rubric is None:
        raise DomainError("Runs are scored by the criteria of a rubric; choose one.", pointer="/rubric")
    if spec.llm_connection.project_id != project.pk or (
        spec.rubric is not None and spec.rubric.project_id != project.pk
    ):
        raise DomainError("A judge is made of what its own project has.", status=404)
    if not 1 <= spec.samples <= MOST_SAMPLES:
        raise DomainError(f"1 to {MOST_SAMPLES} samples are averaged.", pointer="/samples")
    check_prompt(spec.prompt)
    if len(spec.guidelines) > LONGEST_GUIDELINES:
        raise DomainError(
            f"Guidelines have at most {LONGEST_GUIDELINES:,} characters.", pointer="/guidelines"
        )
    judge = Judge.objects.create(
        project=project,
        name=name,
        llm_connection=spec.llm_connection,
        rubric=spec.rubric,
        mode=spec.mode,
        guidelines=spec.guidelines.strip(),
        samples=spec.samples,
        prompt=spec.prompt,
        created_by=by,
    )
    record_audit(project=project, actor=by, verb="judge.added", target=name, data={"mode": spec.mode})
    return judge


@transaction.atomic
def delete_judge(*, judge: Judge, by: User | None) -> None:
    """With its judge runs; what it handed in stays, under its name, until it is deleted as any annotator's is.

    Raises Conflict where an endpoint asks it.
    """
    locked = Judge.objects.select_for_update(of=("self",)).select_related("project").get(pk=judge.pk)
    record_audit(project=locked.project, actor=by, verb="judge.removed", target=locked.name)
    kind = locked.fact_kind
    try:
        locked.delete()
    except ProtectedError as error:
        users = sorted({str(one) for one in error.protected_objects})
        raise Conflict(
            f"{locked.name} cannot be removed: {', '.join(users[:5])} {'asks' if len(users) == 1 else 'ask'} it, or "
            "could be rolled back to it."
        ) from None
    replace_facts(project=locked.project, kind=kind, facts=())


def lock_judge(judge: Judge) -> None:
    """For whoever is about to put it to use: it cannot be removed before this transaction ends. Raises Conflict."""
    if not Judge.objects.select_for_update(no_key=True).filter(pk=judge.pk).exists():
        raise Conflict(f"The judge {judge.name} has been removed.")


def check_prompt(version: int) -> None:
    if version not in PROMPTS:
        raise DomainError(
            f"There is no version {version} of the prompts; there are {', '.join(map(str, PROMPTS))}.",
            pointer="/prompt",
        )
