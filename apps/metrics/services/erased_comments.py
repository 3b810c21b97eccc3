"""Metrics without the words of comments that were erased."""

import json
from collections.abc import Iterable

from django.db.models import Q

from apps.annotation.models import Comment
from apps.datasets.erased_words import ErasedTexts, Erasure
from apps.llm.models import CachedCompletion
from apps.metrics.models import Aspect, Induction, Metric, MetricVerdict
from apps.metrics.services.inductions import refresh_facts
from apps.rubrics.models import Criterion
from workers.schema.patterns import TextPattern

_WORD = TextPattern(r"\pL{3,}")


def erase_comment_words(erasure: Erasure) -> None:
    """Delete the points of the comments and completions about them; take what quotes them out of metrics, verdicts and
    induced criteria. A metric that is named by words of these comments only gets a number as its name, and so does its
    criterion."""
    comments = Comment.objects.filter(pk__in=erasure.comments)
    points = Aspect.objects.filter(comment__in=comments)
    texts = [*comments.values_list("text", flat=True), *points.values_list("feedback", flat=True)]
    erased = ErasedTexts(texts)
    if not erased:
        return
    points.delete()
    CachedCompletion.objects.filter(comment__in=comments).delete()
    _forget_completions(erasure, erased)
    theirs = _words(texts)
    for induction in Induction.objects.filter(project=erasure.project):
        _erase_in_metrics(induction, erased, theirs)
    verdicts = MetricVerdict.objects.filter(metric__induction__project=erasure.project).exclude(reason="")
    for verdict in verdicts.iterator(chunk_size=2000):
        if erased.is_in(verdict.reason):
            MetricVerdict.objects.filter(pk=verdict.pk).update(reason=erased.taken_out_of(verdict.reason))
    _erase_in_criteria(erasure, erased)
    refresh_facts(erasure.project)


def _erase_in_metrics(induction: Induction, erased: ErasedTexts, theirs: set[str]) -> None:
    others = _words(Aspect.objects.filter(induction=induction).values_list("feedback", flat=True))
    criteria = Criterion.objects.filter(project=induction.project)
    names = {*induction.metrics.values_list("name", flat=True), *criteria.values_list("name", flat=True)}
    for metric in induction.metrics.all():
        metric.definition = erased.taken_out_of(metric.definition)
        if erased.is_in(metric.name) or _words([metric.name]) & theirs - others:
            name = _numbered(metric, names)
            criteria.filter(name=metric.name, origin=Criterion.Origin.INDUCED).update(name=name)
            metric.name = name
            names.add(name)
        metric.save(update_fields=["name", "definition"])


def _numbered(metric: Metric, names: set[str]) -> str:
    name = f"metric {metric.position + 1}"
    while name in names:
        name += " (renamed)"
    return name


def _erase_in_criteria(erasure: Erasure, erased: ErasedTexts) -> None:
    """Their definitions and examples."""
    fields = ("definition", "good_example", "bad_example")
    for criterion in Criterion.objects.filter(project=erasure.project, origin=Criterion.Origin.INDUCED):
        changed = {name: erased.taken_out_of(getattr(criterion, name)) for name in fields}
        if any(getattr(criterion, name) != text for name, text in changed.items()):
            Criterion.objects.filter(pk=criterion.pk).update(**changed)


def _forget_completions(erasure: Erasure, erased: ErasedTexts) -> None:
    """Completions about trajectories that quote a comment: they are only a cache."""
    rows = CachedCompletion.objects.filter(llm_connection__project=erasure.project)
    about = rows.filter(~Q(trajectory=None)).values_list("pk", "answer")
    quoting = [
        pk
        for pk, answer in about.iterator(chunk_size=2000)
        if erased.is_in(json.dumps(answer, ensure_ascii=False))
    ]
    CachedCompletion.objects.filter(pk__in=quoting).delete()


def _words(texts: Iterable[str]) -> set[str]:
    return {word for text in texts for word in _WORD.findall(text.casefold())}
