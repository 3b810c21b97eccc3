"""What happens to assignments and annotations when a user account is closed or deleted."""

from django.db.models import Q

from apps.accounts.models import Project, User
from apps.annotation.models import (
    Annotation,
    Annotator,
    Assignment,
    CategoryChoice,
    Comment,
    CriterionScore,
    StepLabelSet,
)
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
    annotators = annotators_of(user)
    erased = _erase_words(annotators) if erase_comments else 0
    for annotator in annotators:
        Annotator.objects.filter(pk=annotator.pk).update(user=None, name=pseudonym_of(annotator))
    return {"names hidden": len(annotators), "comments": erased}


def annotators_of(user: User) -> list[Annotator]:
    """Those of the account, and those of its address in imported feedback."""
    rows = Annotator.objects.filter(Q(user=user) | Q(user=None, name__iexact=user.email))
    return list(rows.select_related("project").order_by("pk"))


def _erase_words(annotators: list[Annotator]) -> int:
    """The number of comments. What was chosen, marked and scored stays."""
    assignments = Assignment.objects.filter(annotator__in=annotators)
    assignments.update(reason="")
    assignments.exclude(state=State.SUBMITTED).update(draft={})
    annotations = Annotation.objects.filter(assignment__in=assignments)
    CriterionScore.objects.filter(annotation__in=annotations).update(note="")
    CategoryChoice.objects.filter(annotation__in=annotations).update(note="")
    StepLabelSet.objects.filter(annotation__in=annotations).update(corrections={})
    return Comment.objects.filter(annotation__in=annotations).update(text=ERASED, quote="")


def pseudonym_of(annotator: Annotator) -> str:
    """Not yet used in the project: feedback may have been imported from people of such names."""
    name, number = f"annotator-{annotator.pk}", 1
    taken = Annotator.objects.filter(project=annotator.project).filter(~Q(pk=annotator.pk))
    while taken.filter(name=name).exists():
        number += 1
        name = f"annotator-{annotator.pk}-{number}"
    return name
