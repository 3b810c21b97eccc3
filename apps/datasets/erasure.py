"""Permanent deletion of an annotator's judgements or of a trajectory: rows and drafts immediately, files later.

A dataset version that holds something deleted is withdrawn: it can no longer be trained on or exported, and its files
are removed when the deletion commits, or RETENTION_DAYS later where the operator keeps them for so long. Export files
are removed immediately: they can be written again. What was made from the words of a person goes too (erased_words.py);
models keep what they learnt, and are named.
"""

from collections.abc import Collection
from dataclasses import dataclass
from datetime import timedelta

from django.conf import settings
from django.db import connection, transaction
from django.db.models import Q, QuerySet
from django.utils import timezone

from apps.accounts.models import Project, User
from apps.accounts.services import record_audit
from apps.annotation.account_closing import pseudonym_of
from apps.annotation.models import Annotation, Annotator, Assignment, Comment, Item, Participation
from apps.annotation.services.items import recount
from apps.core.jobs.job_queue import JobState
from apps.core.storage.artifacts import delete_file, delete_tree
from apps.datasets.erased_words import Erasure, erase_derived
from apps.datasets.export_jobs import remove_exports
from apps.datasets.models import DatasetVersion
from apps.datasets.selectors import data_folder
from apps.datasets.splits import SPLITS
from apps.trajectories.attachments import PREFIX, file_name, thumbnail_name
from apps.trajectories.models import Attachment, Step, Trace, Trajectory, TrajectoryComment
from workers.schema import holds_trajectory
from workers.schema.patterns import TextPattern, quote

_DIGEST = TextPattern(quote(PREFIX) + r"([0-9a-f]{64})")
# One pass over the steps that are left, however many digests there are.
_STILL_NAMED = """
    SELECT DISTINCT found[1] FROM trajectories_step AS step
    JOIN trajectories_trajectory AS trajectory ON trajectory.id = step.trajectory_id
    CROSS JOIN LATERAL regexp_matches(
        step.message::text || ' ' || step.observation::text, 'sha256:([0-9a-f]{64})', 'g'
    ) AS found
    WHERE trajectory.project_id = %s AND found[1] = ANY(%s)
"""
_UNFINISHED = Q(state__in=[JobState.QUEUED, JobState.RUNNING])


@dataclass(frozen=True, slots=True)
class ErasureSummary:
    """judgements: annotations, every revision. dataset_versions: names of those withdrawn. models: those trained on
    these, which keep what they learnt until they are deleted. page_comments: of a person, on pages of trajectories."""

    judgements: int
    items: int
    dataset_versions: tuple[str, ...]
    models: tuple[str, ...] = ()
    page_comments: int = 0


def same_person(annotator: Annotator) -> QuerySet[Annotator]:
    """All annotators of that name in the project: a person with an account has a second one by imported feedback."""
    return Annotator.objects.filter(project=annotator.project, name=annotator.name)


def dataset_versions_with_annotator(annotator: Annotator, *, with_words: bool = True) -> list[DatasetVersion]:
    """Frozen versions with feedback of the annotator, and versions being built. with_words: also those with labels made
    from comments, if they wrote any."""
    rows = DatasetVersion.objects.filter(project=annotator.project, withdrawn_at=None).select_related(
        "project"
    )
    held = Q(annotators__has_key=annotator.name) | _UNFINISHED
    if with_words and _comments(same_person(annotator)).exists():
        held |= Q(filters__has_key="derived")
    return list(rows.filter(held).order_by("pk"))


def dataset_versions_with_trajectory(trajectory: Trajectory) -> list[DatasetVersion]:
    """Frozen versions with the trajectory, and versions being built. Reads every frozen dataset of the project."""
    rows = DatasetVersion.objects.filter(project=trajectory.project_id, withdrawn_at=None).select_related(
        "project"
    )
    frozen = rows.filter(state=JobState.SUCCEEDED, created_at__gte=trajectory.created_at)
    held = [version.pk for version in frozen.order_by("pk") if _contains_trajectory(version, trajectory)]
    return list(rows.filter(Q(pk__in=held) | _UNFINISHED).order_by("pk"))


def plan_erasure(target: Annotator | Trajectory) -> ErasureSummary:
    """What deleting the annotations of an annotator, or a trajectory, would delete."""
    if isinstance(target, Annotator):
        items = Item.objects.filter(assignments__annotator__in=same_person(target))
        annotations = Annotation.objects.filter(assignment__annotator__in=same_person(target))
        dataset_versions = dataset_versions_with_annotator(target)
        page_comments = _page_comments(same_person(target)).count()
    else:
        items = Item.objects.filter(places__trajectory=target)
        annotations = Annotation.objects.filter(assignment__item__in=items)
        dataset_versions = dataset_versions_with_trajectory(target)
        page_comments = 0
    return ErasureSummary(
        annotations.count(),
        items.distinct().count(),
        version_names(dataset_versions),
        models_trained_on(dataset_versions),
        page_comments,
    )


@transaction.atomic
def erase_judgements(*, annotator: Annotator, by: User | None) -> ErasureSummary:
    """Delete all annotations of a person, with adjudications and drafts, under an account and imported under its name,
    and their name and words in what was made from them.

    Their gold items become work items.
    """
    people = list(same_person(annotator).select_for_update(no_key=True, of=("self",)).order_by("pk"))
    assignments = Assignment.objects.filter(annotator__in=people)
    items = lock_items(Item.objects.filter(assignments__in=assignments))
    judgements = Annotation.objects.filter(assignment__in=assignments).count()
    held = dataset_versions_with_annotator(annotator)
    names = withdraw(held, "annotations in it were deleted", by)
    comments = tuple(_comments(people).values_list("pk", flat=True))
    erase_derived(Erasure(annotator.project, {annotator.name: pseudonym_of(annotator)}, comments))
    page_comments = _page_comments(people)
    page_comment_count = page_comments.count()
    page_comments.delete()
    assignments.delete()
    Participation.objects.filter(annotator__in=people).delete()
    _free_undecided(items)
    recount(items)
    remove_exports(project=annotator.project)
    summary = ErasureSummary(judgements, len(items), names, models_trained_on(held), page_comment_count)
    target = " and ".join(f"annotator {person.pk}" for person in people)
    _record_erasure(annotator.project, by, "judgements.deleted", target, summary)
    for person in people:
        if person.user_id is None:
            person.delete()
    return summary


def erase_trajectory(*, trajectory: Trajectory, by: User | None) -> ErasureSummary:
    """Delete a trajectory, its items with their annotations, and attachments that no other trajectory has."""
    dataset_versions = dataset_versions_with_trajectory(trajectory)  # slow, so before anything is locked
    with transaction.atomic():
        items = lock_items(Item.objects.filter(places__trajectory=trajectory))
        judgements = Annotation.objects.filter(assignment__item__in=items).count()
        Item.objects.filter(pk__in=items).delete()
        digests = attachment_digests(Trajectory.objects.filter(pk=trajectory.pk))
        project, task, number = trajectory.project, trajectory.task, trajectory.pk
        trajectory.delete()
        # With its spans, or the trajectory would be created from them again.
        Trace.objects.filter(project=project, name=str(trajectory.metadata.get("trace"))).delete()
        if not task.trajectories.exists():
            task.delete()
        files = drop_unnamed_attachments(project, digests)
        names = withdraw(dataset_versions, "a trajectory in it was deleted", by)
        summary = ErasureSummary(judgements, len(items), names, models_trained_on(dataset_versions))
        remove_exports(project=project)
        _record_erasure(project, by, "trajectory.deleted", f"run {number}", summary)
    for name in files:  # after the commit: a file without a row does no harm
        delete_file(name)
    return summary


def remove_withdrawn() -> int:
    """Remove the files of versions that were withdrawn RETENTION_DAYS ago; returns their number. Safe to repeat."""
    since = timezone.now() - timedelta(days=settings.RETENTION_DAYS)
    due = DatasetVersion.objects.filter(withdrawn_at__lte=since, removed_at=None).exclude(_UNFINISHED)
    removed = 0
    for dataset_version in due.order_by("withdrawn_at")[:20]:
        if dataset_version.artifact:
            delete_tree(dataset_version.artifact)
        DatasetVersion.objects.filter(pk=dataset_version.pk).update(removed_at=timezone.now(), annotators={})
        removed += 1
    return removed


def _remove_all_withdrawn() -> None:
    while remove_withdrawn():
        pass


def _comments(people: QuerySet[Annotator] | Collection[Annotator]) -> QuerySet[Comment]:
    return Comment.objects.filter(annotation__assignment__annotator__in=people)


def _page_comments(people: QuerySet[Annotator] | Collection[Annotator]) -> QuerySet[TrajectoryComment]:
    accounts = [(person.project_id, person.user_id) for person in people if person.user_id is not None]
    wanted = Q(pk__in=[])
    for project, user in accounts:
        wanted |= Q(project=project, author=user)
    return TrajectoryComment.objects.filter(wanted)


def models_trained_on(dataset_versions: Collection[DatasetVersion]) -> tuple[str, ...]:
    """Names of models that are there; models that descend from these are on the lineage page."""
    rows = DatasetVersion.objects.filter(
        pk__in=[version.pk for version in dataset_versions],
        runs__model__isnull=False,
        runs__model__deleted_at=None,
    ).order_by("runs__model__pk")
    found = rows.values_list("runs__model__name", "runs__model__version").distinct()
    return tuple(f"{name}@{version}" for name, version in found)


def lock_items(items: QuerySet[Item]) -> list[int]:
    """Lock the items, in the order of the queue: items before assignments."""
    wanted = list(items.values_list("pk", flat=True).distinct())
    rows = Item.objects.select_for_update(no_key=True).filter(pk__in=wanted).order_by("pk")
    return list(rows.values_list("pk", flat=True))


def _free_undecided(items: Collection[int]) -> None:
    """Gold and practice items without an adjudication have no expected answer any more: make them work items."""
    decided = Assignment.objects.filter(
        item__in=items, is_adjudication=True, state=Assignment.State.SUBMITTED
    )
    rows = Item.objects.filter(pk__in=items).exclude(purpose=Item.Purpose.WORK)
    for item in rows.exclude(pk__in=decided.values("item")).select_related("campaign"):
        item.purpose, item.explanation, item.overlap = Item.Purpose.WORK, "", item.campaign.overlap
        item.save(update_fields=["purpose", "explanation", "overlap"])


def _contains_trajectory(dataset_version: DatasetVersion, trajectory: Trajectory) -> bool:
    folder = data_folder(dataset_version)
    hashes = (trajectory.content_hash, trajectory.earlier_content_hash)
    return any(
        holds_trajectory(folder / f"{split}.jsonl.zst", content)
        for split in SPLITS
        for content in hashes
        if content
    )


def withdraw(dataset_versions: Collection[DatasetVersion], because: str, by: User | None) -> tuple[str, ...]:
    """Exclude the versions from training and export; their files are deleted, see RETENTION_DAYS. Returns names."""
    for dataset_version in dataset_versions:
        dataset_version.withdrawn_at, dataset_version.withdrawn_because = timezone.now(), because
        dataset_version.save(update_fields=["withdrawn_at", "withdrawn_because"])
        record_audit(
            project=dataset_version.project,
            actor=by,
            verb="dataset.withdrawn",
            target=str(dataset_version),
            data={"because": because},
        )
    if dataset_versions and not settings.RETENTION_DAYS:
        transaction.on_commit(_remove_all_withdrawn, robust=True)  # a job removes what fails here
    return version_names(dataset_versions)


def version_names(dataset_versions: Collection[DatasetVersion]) -> tuple[str, ...]:
    return tuple(f"{dataset_version.name}@{dataset_version.version}" for dataset_version in dataset_versions)


def attachment_digests(rows: QuerySet[Trajectory]) -> set[str]:
    """The digests of the attachments named in the steps of the trajectories."""
    texts = Step.objects.filter(trajectory__in=rows).values_list("message", "observation")
    return {digest for parts in texts.iterator() for digest in _DIGEST.findall(repr(parts))}


def drop_unnamed_attachments(project: Project, digests: Collection[str]) -> list[str]:
    """Delete attachment rows that no step of the project names any more; returns the names of their files."""
    if not digests:
        return []
    with connection.cursor() as cursor:
        cursor.execute(_STILL_NAMED, [project.pk, sorted(digests)])
        named = {digest for (digest,) in cursor.fetchall()}
    files = []
    for digest in sorted({*digests} - named):
        if Attachment.objects.filter(project=project, sha256=digest).delete()[0]:
            files += [file_name(project.pk, digest), thumbnail_name(project.pk, digest)]
    return files


def _record_erasure(
    project: Project, by: User | None, verb: str, target: str, summary: ErasureSummary
) -> None:
    """Without the name of the person: the audit trail is kept permanently."""
    data = {
        "judgements": summary.judgements,
        "items": summary.items,
        "datasets": list(summary.dataset_versions),
        "models": list(summary.models),
    } | ({"page_comments": summary.page_comments} if summary.page_comments else {})
    record_audit(project=project, actor=by, verb=verb, target=target, data=data)
