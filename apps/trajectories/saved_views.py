"""Views: filters of trajectories that the members of a project share under a name."""

from django.db import IntegrityError, transaction

from apps.accounts.actors import Actor, person_of
from apps.accounts.models import Project
from apps.accounts.services import record_audit
from apps.core.errors import Conflict, DomainError, NotFound
from apps.core.storage.storable_text import is_storable
from apps.trajectories.filters import FilterSource, parse_filter
from apps.trajectories.models import SavedView

LONGEST_NAME, MOST_VIEWS = 60, 500


@transaction.atomic
def create_view(*, project: Project, name: str, source: FilterSource, by: Actor) -> SavedView:
    """Raises DomainError, and Conflict where the name is taken."""
    if project.saved_views.count() >= MOST_VIEWS:
        raise DomainError(f"A project has at most {MOST_VIEWS} views; delete one first.")
    view = SavedView(project=project, created_by=person_of(by))
    _set_view(view, name, source)
    record_audit(
        project=project, actor=by, verb="view.created", target=view.name, data={"filter": view.query}
    )
    return view


@transaction.atomic
def change_view(
    *, view: SavedView, name: str | None = None, source: FilterSource = None, by: Actor
) -> SavedView:
    """Rename it, or change its filter. Raises DomainError, and Conflict where the name is taken."""
    before = view.name
    _set_view(view, view.name if name is None else name, view.query if source is None else source)
    data = {"name": view.name, "filter": view.query}
    record_audit(project=view.project, actor=by, verb="view.changed", target=before, data=data)
    return view


@transaction.atomic
def delete_view(*, view: SavedView, by: Actor) -> None:
    record_audit(
        project=view.project, actor=by, verb="view.deleted", target=view.name, data={"filter": view.query}
    )
    view.delete()


def get_view(project: Project, *, pk: int | None = None, name: str | None = None) -> SavedView:
    """By its number or its name. Raises NotFound."""
    by = {"pk": pk} if name is None else {"name": name}
    found = SavedView.objects.select_related("project").filter(project=project, **by).first()
    if found is None:
        raise NotFound(f"There is no view {pk if name is None else repr(name)} in this project.")
    return found


def _set_view(view: SavedView, name: str, source: FilterSource) -> None:
    view.name = " ".join(name.split())
    if not 1 <= len(view.name) <= LONGEST_NAME or not is_storable(view.name):
        raise DomainError(f"The name of a view needs 1 to {LONGEST_NAME} characters.", pointer="/name")
    view.query = parse_filter(source).query
    if not view.query:
        raise DomainError("A view needs a filter. Set a filter first.", pointer="/filter")
    try:
        with transaction.atomic():
            view.save()
    except IntegrityError as error:
        if "saved_view_once" not in str(error):
            raise
        raise Conflict(
            f"This project already has a view called {view.name!r}; choose another name.", pointer="/name"
        ) from None
