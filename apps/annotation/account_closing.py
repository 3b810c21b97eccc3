"""What happens to assignments and annotations when a user account is closed or deleted."""

from django.db.models import Q

from apps.accounts.models import Project, User
from apps.annotation.models import Annotator, Assignment, Comment
from apps.annotation.services import release_member_assignments

State = Assignment.State
ERASED = "[erased]"


def release_items(user: User) -> dict[str, int]:
    """Release the user's locked and reserved items."""
    released = 0
    for project in Project.objects.filter(annotators__user=user).order_by("pk"):
        held = Assignment.objects.filter(
            annotator__user=user, annotator__project=project, state__in=[State.LOCKED, State.ASSIGNED]
        )
        released += held.count()
        release_member_assignments(project=project, user=user)
    return {"items released": released}


def hide_names(user: User, erase_comments: bool) -> dict[str, int]:
    """Keep annotations, for agreement and reliability, under the pseudonym `annotator-N`."""
    erased = 0
    if erase_comments:
        theirs = Comment.objects.filter(annotation__assignment__annotator__user=user)
        erased = theirs.update(text=ERASED, quote="")
    annotators = list(Annotator.objects.filter(user=user).select_related("project"))
    for annotator in annotators:
        Annotator.objects.filter(pk=annotator.pk).update(user=None, name=pseudonym_of(annotator))
    return {"names hidden": len(annotators), "comments": erased}


def pseudonym_of(annotator: Annotator) -> str:
    """Not yet used in the project: feedback may have been imported from people of such names."""
    name, number = f"annotator-{annotator.pk}", 1
    taken = Annotator.objects.filter(project=annotator.project).filter(~Q(pk=annotator.pk))
    while taken.filter(name=name).exists():
        number += 1
        name = f"annotator-{annotator.pk}-{number}"
    return name
