"""Which trajectories a member may view: researchers all of the project, others those of their own work.

The app of that work registers a source.
"""

from collections.abc import Callable
from itertools import islice
from typing import Any

from django.db.models import Q, QuerySet, TextField
from django.db.models.functions import Cast

from apps.accounts.models import Membership, Role
from apps.core.errors import NotFound
from apps.core.registries import Registry
from apps.trajectories.attachments import attachments_by_digest
from apps.trajectories.models import Attachment, Step, Trajectory
from apps.trajectories.selectors import require_trajectory

# Keys of trajectories of a membership's project, the latest work first.
Source = Callable[[Membership], QuerySet[Any, int]]
_SOURCES: Registry[Source] = Registry()
_AT_ONCE = 20  # trajectories whose steps are looked through in one query
_MOST = 2000  # of a member's latest, in which a picture is looked for


def register(source: Source) -> None:
    """source: which trajectories the work of a member below researcher shows them."""
    _SOURCES.add(source)


def viewable_trajectory(membership: Membership, pk: int) -> Trajectory:
    """The trajectory with its task. Raises NotFound where it is not this member's to see, as where there is none."""
    trajectory = require_trajectory(membership.project, pk)
    if _sees_all(membership) or any(source(membership).filter(trajectory=pk).exists() for source in _SOURCES):
        return trajectory
    raise NotFound(f"There is no trajectory {pk} in this project.")


def viewable_attachment(membership: Membership, sha256: str) -> Attachment:
    """The attachment of this digest. Raises NotFound unless a trajectory that this member may look at has it."""
    attachment = attachments_by_digest(membership.project, [sha256]).get(sha256)
    if attachment is None or not (_sees_all(membership) or _is_shown(membership, sha256)):
        raise NotFound("There is no such attachment in this project.")
    return attachment


def _sees_all(membership: Membership) -> bool:
    return Role(membership.role).includes(Role.RESEARCHER)


def _is_shown(membership: Membership, sha256: str) -> bool:
    holds = Q(_message__contains=f"sha256:{sha256}") | Q(_observation__contains=f"sha256:{sha256}")
    steps = Step.objects.annotate(
        _message=Cast("message", TextField()), _observation=Cast("observation", TextField())
    ).filter(holds)
    for source in _SOURCES:
        keys = source(membership)[:_MOST].iterator()
        while some := list(islice(keys, _AT_ONCE)):
            if steps.filter(trajectory__in=some).exists():
                return True
    return False
