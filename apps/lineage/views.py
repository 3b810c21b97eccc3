"""From a served reward to the judgements behind it, and from a judgement to what it is in."""

from typing import Any

from django.contrib import messages
from django.http import HttpResponse
from django.shortcuts import redirect, render
from django.views.decorators.http import require_http_methods, require_safe

from apps.accounts.access import ProjectRequest, project_view
from apps.accounts.models import Project, Role
from apps.annotation.models import Annotator
from apps.core.errors import DomainError, NotFound
from apps.core.jobs.job_queue import JobState
from apps.datasets.selectors import list_dataset_versions, require_frozen
from apps.datasets.splits import SPLITS
from apps.lineage.selectors import (
    Behind,
    Made,
    behind,
    dataset_versions_with,
    dataset_versions_with_item,
    deleted_under,
    item_in,
    labels_of,
    labels_that_moved,
    made_of,
    sample_in,
    samples_of,
    uses_of,
    withdrawn,
)
from apps.lineage.tracing import require_traceable, trace
from apps.rewards.models import ScoreSample
from apps.rewards.selectors import endpoints_of
from apps.training.models import RewardModel

PAGE = 50
PEOPLE = 30


@require_safe
@project_view(Role.RESEARCHER)
def lineage_list(request: ProjectRequest, project: Project) -> HttpResponse:
    """Every endpoint with what it was made of, and what was made of what has been deleted."""
    endpoints = [
        (endpoint, endpoint.samples.order_by("-at", "-pk").first()) for endpoint in endpoints_of(project)
    ]
    context = {"project": project, "endpoints": endpoints, "made": _with_samples(made_of(withdrawn(project)))}
    return render(request, "lineage/lineage_list.html", context)


@require_http_methods(["GET", "HEAD", "POST"])
@project_view(Role.RESEARCHER)
def sample_lineage(request: ProjectRequest, project: Project, pk: int) -> HttpResponse:
    """POST has it found out which judgements moved the reward: `model`, its number."""
    sample = sample_in(project, pk)
    chain = behind(sample)
    if request.method == "POST":
        model = next((one.model for one in chain if str(one.model.pk) == request.POST.get("model")), None)
        if model is None:
            raise NotFound("No such model is behind this reward.")
        try:
            trace(sample=sample, model=model)
        except DomainError as error:
            messages.error(request, error.message)
        return redirect("lineage:sample-lineage", project.slug, pk)
    context = {
        "project": project,
        "sample": sample,
        "revision": sample.endpoint.revisions.filter(number=sample.version).first(),
        "chain": [(one, _people(one)) for one in chain],
    }
    return render(request, "lineage/sample_lineage.html", context | _moved(sample, chain))


@require_safe
@project_view(Role.RESEARCHER)
def sample_labels(request: ProjectRequest, project: Project, pk: int) -> HttpResponse:
    """The part that changes while it is found out."""
    sample = sample_in(project, pk)
    context = {"project": project, "sample": sample} | _moved(sample, behind(sample))
    return render(request, "lineage/_sample_labels.html", context)


@require_safe
@project_view(Role.RESEARCHER)
def dataset_labels(request: ProjectRequest, project: Project, pk: int) -> HttpResponse:
    """`?split=train|validation|test`, `?annotator=NAME`, `?page=1`: what a frozen dataset holds, record by record."""
    dataset_version = list_dataset_versions(project).filter(pk=pk).first()
    if dataset_version is None:
        raise NotFound(f"There is no dataset {pk} in this project.")
    require_frozen(dataset_version)
    split = request.GET.get("split", "train")
    split = split if split in SPLITS else "train"
    annotator = request.GET.get("annotator", "")
    page = request.GET.get("page", "1")
    number = max(1, int(page)) if page.isdecimal() and len(page) < 8 else 1
    labels, more = labels_of(
        dataset_version, split=split, annotator=annotator, start=PAGE * (number - 1), count=PAGE
    )
    context = {
        "project": project,
        "dataset_version": dataset_version,
        "labels": labels,
        "split": split,
        "splits": dataset_version.splits.items(),
        "annotator": annotator,
        "page": number,
        "more": more,
        "people": _named(dataset_version.annotators, project),
    }
    return render(request, "lineage/dataset_labels.html", context)


@require_safe
@project_view(Role.RESEARCHER)
def item_lineage(request: ProjectRequest, project: Project, pk: int) -> HttpResponse:
    item = item_in(project, pk)
    context = {
        "project": project,
        "item": item,
        "made": _with_samples(made_of(dataset_versions_with_item(item))),
    }
    return render(request, "lineage/item_lineage.html", context)


@require_safe
@project_view(Role.RESEARCHER)
def annotator_lineage(request: ProjectRequest, project: Project, pk: int) -> HttpResponse:
    annotator = Annotator.objects.filter(project=project, pk=pk).select_related("project").first()
    if annotator is None:
        raise NotFound(f"There is no annotator {pk} in this project.")
    made = _with_samples(made_of(dataset_versions_with(annotator)))
    context = {"project": project, "annotator": annotator, "made": made}
    return render(request, "lineage/annotator_lineage.html", context)


@require_safe
@project_view(Role.RESEARCHER)
def model_uses(request: ProjectRequest, project: Project, pk: int) -> HttpResponse:
    """A line on a model's page: where it answers, and whether what it learnt from has been deleted."""
    model = RewardModel.objects.filter(project=project, pk=pk).select_related("project").first()
    if model is None:
        raise NotFound(f"There is no model {pk} in this project.")
    context = {"project": project, "revisions": uses_of(model), "deleted": deleted_under(model)}
    return render(request, "lineage/_model_uses.html", context)


def _moved(sample: ScoreSample, chain: list[Behind]) -> dict[str, Any]:
    """What was found out, or is being, and which models can still be asked about."""
    tracings = {one.model_id: one for one in sample.tracings.select_related("model__project")}
    found, open_models, unknown = [], [], []
    for one in chain:
        tracing = tracings.get(one.model.pk)
        try:
            _, dataset_version = require_traceable(one.model)
        except DomainError as error:
            unknown.append(error.message)
            continue
        if tracing is None or tracing.state in (JobState.FAILED, JobState.CANCELLED):
            open_models.append(one.model)
        if tracing is not None:
            is_there = tracing.state == JobState.SUCCEEDED
            labels = labels_that_moved(dataset_version, tracing.result["moved"]) if is_there else []
            found.append((tracing, labels, max((abs(each.by or 0) for each in labels), default=0)))
    return {
        "tracings": found,
        "open_models": open_models,
        "unknown": unknown,
        "is_busy": any(not tracing.is_finished for tracing, _, _ in found),
    }


def _people(one: Behind) -> list[tuple[str, int, int | None]]:
    """Whose judgements are in it: name, records, and her number; those who said most first."""
    return _named(one.dataset_version.annotators, one.dataset_version.project) if one.dataset_version else []


def _named(annotators: dict[str, Any], project: Project) -> list[tuple[str, int, int | None]]:
    ordered = sorted(annotators.items(), key=lambda one: (-one[1]["records"], one[0]))[:PEOPLE]
    rows = Annotator.objects.filter(project=project, name__in=[name for name, _ in ordered])
    numbers = dict(rows.values_list("name", "pk"))
    return [(name, said["records"], numbers.get(name)) for name, said in ordered]


def _with_samples(made: list[Made]) -> list[tuple[Made, list[ScoreSample]]]:
    """With the newest rewards that it is in."""
    return [
        (
            one,
            [
                sample
                for used in one.models
                for revision in used.revisions[:1]
                for sample in samples_of(revision)
            ][:PEOPLE],
        )
        for one in made
    ]
