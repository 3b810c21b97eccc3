"""Comments on the page of a trajectory: written, edited and deleted by members, outside any campaign."""

from django.db import transaction
from django.db.models import QuerySet
from django.urls import reverse
from django.utils import timezone

from apps.accounts.mentions import mentioned_users, without_mentions
from apps.accounts.models import ApiKey, Project, Role, User
from apps.accounts.services import record_audit
from apps.core.errors import DomainError, Forbidden, NotFound
from apps.inbox.mentions import notify_mentioned
from apps.trajectories.models import Trajectory, TrajectoryComment

Author = User | ApiKey


def list_comments(project: Project) -> QuerySet[TrajectoryComment]:
    """Of all trajectories of the project."""
    rows = TrajectoryComment.objects.filter(project=project)
    return rows.select_related("author", "service_account", "trajectory__task").prefetch_related("mentions")


def trajectory_comments(trajectory: Trajectory) -> list[TrajectoryComment]:
    """On all of it first, then by step; the oldest first."""
    rows = list_comments(trajectory.project).filter(trajectory=trajectory).order_by("pk")
    return sorted(rows, key=lambda comment: -1 if comment.step is None else comment.step)


def comments_by_step(trajectory: Trajectory) -> dict[int, list[TrajectoryComment]]:
    found: dict[int, list[TrajectoryComment]] = {}
    for comment in trajectory_comments(trajectory):
        if comment.step is not None:
            found.setdefault(comment.step, []).append(comment)
    return found


def get_comment(trajectory: Trajectory, pk: int) -> TrajectoryComment:
    """Raises NotFound."""
    comment = list_comments(trajectory.project).filter(trajectory=trajectory, pk=pk).first()
    if comment is None:
        raise NotFound(f"There is no comment {pk} on trajectory {trajectory.pk}.")
    return comment


@transaction.atomic
def create_comment(
    *, trajectory: Trajectory, text: str, step: int | None = None, sign: int | None = None, by: Author
) -> TrajectoryComment:
    """Raises DomainError for a text, step or sign that is none."""
    comment = TrajectoryComment.objects.create(
        project=trajectory.project,
        trajectory=trajectory,
        author=_author(by),
        service_account=by.owner_service_account if isinstance(by, ApiKey) else None,
        text=_checked_text(text),
        step=_checked_step(trajectory, step),
        sign=_checked_sign(sign),
    )
    _set_mentions(comment)
    return comment


@transaction.atomic
def edit_comment(
    *, comment: TrajectoryComment, text: str, step: int | None, sign: int | None, by: Author
) -> TrajectoryComment:
    """Raises Forbidden for a comment of someone else, and as create_comment."""
    if not is_own(comment, by):
        raise Forbidden("Only the author of a comment may edit it.")
    comment.text = _checked_text(text)
    comment.step = _checked_step(comment.trajectory, step)
    comment.sign = _checked_sign(sign)
    comment.edited_at = timezone.now()
    comment.save(update_fields=["text", "step", "sign", "edited_at"])
    _set_mentions(comment)
    return comment


@transaction.atomic
def delete_comment(*, comment: TrajectoryComment, by: Author, is_owner: bool = False) -> None:
    """is_owner: of the project, who may delete those of others. Raises Forbidden."""
    if not (is_own(comment, by) or is_owner):
        raise Forbidden("Only the author of a comment, or an owner of the project, may delete it.")
    if not is_own(comment, by):
        target = str(comment.trajectory_id)
        record_audit(project=comment.project, actor=by, verb="comment.deleted", target=target)
    comment.delete()


def _set_mentions(comment: TrajectoryComment) -> None:
    """Store whom the comment mentions, and tell those who were not told of it before."""
    comment.mentions.set(mentioned_users(comment.project, comment.text))
    path = reverse("trajectories:trajectory-detail", args=[comment.project.slug, comment.trajectory_id])
    if comment.step is not None:
        path += f"?step={comment.step}#t{comment.trajectory_id}-s{comment.step}"
    notify_mentioned(
        project=comment.project,
        text=comment.text,
        by=comment.author,
        key=f"trajectory-comment:{comment.pk}",
        where=f"a comment on trajectory {comment.trajectory_id}",
        path=path,
        least_role=Role.RESEARCHER,
    )


def is_own(comment: TrajectoryComment, by: Author) -> bool:
    if isinstance(by, ApiKey) and by.owner_service_account_id is not None:
        return comment.service_account_id == by.owner_service_account_id
    author = _author(by)
    return author is not None and comment.author_id == author.pk


def erase_comments(user: User, erase_words: bool) -> dict[str, int]:
    """When the account is deleted: its comments stay without a name, or are deleted with their words."""
    for comment in TrajectoryComment.objects.filter(mentions=user):
        comment.text = without_mentions(comment.text, user)
        comment.save(update_fields=["text"])
    rows = TrajectoryComment.objects.filter(author=user)
    count = rows.count()
    if erase_words:
        rows.delete()
    else:
        rows.update(author=None)
    return {"trajectory comments": count}


def _author(by: Author) -> User | None:
    return by if isinstance(by, User) else by.owner_user


def _checked_text(text: str) -> str:
    text = text.strip()
    if not 0 < len(text) <= TrajectoryComment.MAX_LENGTH:
        raise DomainError(
            f"The comment has {len(text):,} characters; write 1 to {TrajectoryComment.MAX_LENGTH:,}.",
            pointer="/text",
        )
    return text


def _checked_step(trajectory: Trajectory, step: int | None) -> int | None:
    if step is not None and not 0 <= step < trajectory.step_count:
        raise DomainError(
            f"There is no step {step}; trajectory {trajectory.pk} has the steps 0 to {trajectory.step_count - 1}.",
            pointer="/step",
        )
    return step


def _checked_sign(sign: int | None) -> int | None:
    if sign not in (None, -1, 1):
        raise DomainError(f"sign is {sign}; it must be 1 (good), -1 (bad) or null.", pointer="/sign")
    return sign
