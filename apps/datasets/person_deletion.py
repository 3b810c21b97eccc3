"""Datasets that contain the name of a deleted person."""

from typing import Any

from apps.accounts.models import User
from apps.annotation.account_closing import pseudonym_of
from apps.annotation.models import Annotator
from apps.datasets.erasure import dataset_versions_with_annotator, withdraw
from apps.datasets.export_jobs import remove_exports
from apps.datasets.models import DatasetVersion, Export


def withdraw_named(user: User, erase_comments: bool) -> dict[str, int]:
    """Withdraw datasets whose files contain the name. Freezing again includes the same annotations."""
    withdrawn = 0
    for annotator in Annotator.objects.filter(user=user).select_related("project"):
        withdrawn += len(
            withdraw(dataset_versions_with_annotator(annotator), "it names a deleted person", None)
        )
        remove_exports(project=annotator.project)
        names = {annotator.name: pseudonym_of(annotator)}
        for dataset_version in DatasetVersion.objects.filter(project=annotator.project):
            known = (_renamed(dataset_version.annotators, names), _renamed(dataset_version.filters, names))
            if known != (dataset_version.annotators, dataset_version.filters):
                DatasetVersion.objects.filter(pk=dataset_version.pk).update(
                    annotators=known[0], filters=known[1]
                )
        for export in Export.objects.filter(project=annotator.project):
            if (filters := _renamed(export.filters, names)) != export.filters:
                Export.objects.filter(pk=export.pk).update(filters=filters)
    return {"datasets withdrawn": withdrawn}


def _renamed(value: Any, names: dict[str, str]) -> Any:
    """JSON with other names, as keys too."""
    if isinstance(value, dict):
        return {names.get(name, name): _renamed(each, names) for name, each in value.items()}
    if isinstance(value, list):
        return [_renamed(each, names) for each in value]
    return names.get(value, value) if isinstance(value, str) else value
