"""Annotators of users."""

from apps.accounts.models import Project, User
from apps.annotation.models import Annotator


def annotator_for(*, project: Project, user: User) -> Annotator:
    """The user as an annotator of the project, created on first use. The name is the address, which is unique."""
    annotator, _ = Annotator.objects.get_or_create(project=project, user=user, defaults={"name": user.email})
    return annotator
