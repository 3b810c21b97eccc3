"""Mappings of fields for files of one shape, saved under a name."""

from django.db import transaction

from apps.accounts.models import Project, User
from apps.accounts.services import record_audit
from apps.core.errors import DomainError
from apps.trajectories import formats
from apps.trajectories.formats.mapping import FieldMapping
from apps.trajectories.models import SavedMapping
from workers.errors import RewardError
from workers.schema import parse_json
from workers.schema.decode import require_object

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


def format_given(format: str, mapping: str) -> str | formats.Format:
    """How an import over HTTP is read: by a format's name, or by `mapping`, a JSON object of paths by field.

    Raises DomainError.
    """
    if not mapping:
        return format
    if format != formats.AUTO:
        raise DomainError("format and mapping are both set; leave one of them out.")
    try:
        return formats.by_mapping(FieldMapping(require_object(parse_json(mapping))))
    except RewardError as error:
        place = f" (at {error.pointer})" if error.pointer else ""
        raise DomainError(f"mapping{place}: {error.message}", pointer=error.pointer or None) from None
