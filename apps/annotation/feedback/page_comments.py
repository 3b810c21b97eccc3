"""Comments that members wrote on pages of trajectories, as feedback of a campaign, so that it is frozen and read by
metric induction."""

from collections.abc import Iterator

from apps.accounts.models import Project, User
from apps.annotation.feedback.incoming import FeedbackResult, Found, Incoming, StoredTrajectory
from apps.annotation.feedback.services import import_numbered
from apps.annotation.feedback_types.comment import CommentValue
from apps.annotation.models import Assignment
from apps.trajectories.comments import list_comments
from apps.trajectories.models import TrajectoryComment
from workers.schema import Anchor

CAMPAIGN = "Comments on trajectory pages"


def count_page_comments(project: Project) -> int:
    return TrajectoryComment.objects.filter(project=project).count()


def copy_page_comments(*, project: Project, by: User) -> FeedbackResult:
    """Add those that are not in CAMPAIGN yet, or were edited since. Comments that were deleted stay in it."""
    numbered = enumerate(_records(project), start=1)
    return import_numbered(project=project, numbered=numbered, campaign=CAMPAIGN, by=by)


def _names_of_deleted(project: Project) -> dict[str, str]:
    """Annotators of copies, by the key of their item, whose author deleted the account: not copied once more."""
    copies = Assignment.objects.filter(
        item__campaign__project=project, item__campaign__name=CAMPAIGN, annotator__user=None
    )
    return dict(copies.values_list("item__key", "annotator__name"))


def _records(project: Project) -> Iterator[Found]:
    known = _names_of_deleted(project)
    for comment in list_comments(project).order_by("pk").iterator(chunk_size=500):
        row = comment.trajectory
        anchor = None if comment.step is None else Anchor(steps=(comment.step, comment.step))
        yield Incoming(
            kind="comment",
            places=(StoredTrajectory(content_hash=row.content_hash, number=row.pk),),
            value=CommentValue(text=comment.text, anchor=anchor, sign=comment.sign),  # type: ignore[arg-type]
            annotator=known.get(f"name:comment {comment.pk}", comment.author_name),
            account=comment.author,
            origin="person",
            item=f"comment {comment.pk}",
            campaign=CAMPAIGN,
        )
