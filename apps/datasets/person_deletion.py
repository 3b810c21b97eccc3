"""Datasets that contain the name of a deleted person."""

from apps.accounts.models import User
from apps.annotation.account_closing import annotators_of, pseudonym_of
from apps.annotation.models import Comment
from apps.datasets.erased_words import Erasure, erase_derived
from apps.datasets.erasure import dataset_versions_with_annotator, withdraw
from apps.datasets.export_jobs import remove_exports


def withdraw_named(user: User, erase_comments: bool) -> dict[str, int]:
    """Withdraw datasets whose files contain the name. Freezing again includes the same annotations."""
    withdrawn = 0
    for annotator in annotators_of(user):
        named = dataset_versions_with_annotator(annotator, with_words=erase_comments)
        withdrawn += len(withdraw(named, "it names a deleted person", None))
        remove_exports(project=annotator.project)
        words = Comment.objects.filter(annotation__assignment__annotator=annotator)
        comments = tuple(words.values_list("pk", flat=True)) if erase_comments else ()
        erase_derived(Erasure(annotator.project, {annotator.name: pseudonym_of(annotator)}, comments))
    return {"datasets withdrawn": withdrawn}
