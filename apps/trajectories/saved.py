"""What people save under a name: filters of the explorer, and mappings of fields for files of one shape."""

from django.db import transaction

from apps.accounts.models import Project, User
from apps.accounts.services import record_audit
from apps.core.errors import DomainError, NotFound
from apps.trajectories import formats
from apps.trajectories.formats.mapping import FieldMapping
from apps.trajectories.models import SavedFilter, SavedMapping

MAPPING = "mapping:"  # before the name of a saved mapping, where a format is named


@transaction.atomic
def save_mapping(*, project: Project, name: str, mapping: FieldMapping, by: User) -> SavedMapping:
    """Keep a mapping under a name; one of this name is replaced."""
    saved, _ = SavedMapping.objects.update_or_create(
        project=project, name=name, defaults={"paths": dict(mapping.paths), "created_by": by}
    )
    record_audit(project=project, actor=by, verb="mapping.saved", target=name)
    return saved


def format_named(project: Project, name: str) -> formats.Format | None:
    """The format of that name, or of a saved mapping as `mapping:NAME`; None for `auto`. Raises DomainError."""
    if not name.startswith(MAPPING):
        return formats.by_name(name)
    saved = SavedMapping.objects.filter(project=project, name=name.removeprefix(MAPPING)).first()
    if saved is None:
        known = ", ".join(SavedMapping.objects.filter(project=project).values_list("name", flat=True))
        raise DomainError(
            f"There is no saved mapping {name.removeprefix(MAPPING)!r} in this project. "
            + (f"Saved are {known}." if known else "None is saved yet: upload a file, and choose its fields.")
        )
    return formats.by_mapping(FieldMapping(saved.paths))


def save_filter(*, project: Project, name: str, query: str, by: User) -> SavedFilter:
    """Keep a filter under a name; one of this name is replaced. Raises DomainError."""
    if not query:
        raise DomainError("There is no filter to save. Set a filter first.")
    saved, _ = SavedFilter.objects.update_or_create(
        project=project, name=name, defaults={"query": query, "created_by": by}
    )
    return saved


def delete_filter(*, project: Project, pk: int) -> SavedFilter:
    """Raises NotFound."""
    found = SavedFilter.objects.filter(project=project, pk=pk).first()
    if found is None:
        raise NotFound(f"There is no saved filter {pk} in this project.")
    found.delete()
    return found
