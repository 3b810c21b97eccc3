"""Pages of lineage: from a served reward to its feedback, and from feedback to models and rewards."""

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
    DatasetUse,
    ServedModel,
    dataset_versions_with_annotator,
    dataset_versions_with_item,
    find_dataset_uses,
    get_item,
    get_sample,
    most_influential_labels,
    newest_sample_by_endpoint,
    newest_samples,
    read_labels,
    served_models,
    serving_revisions,
    withdrawn_datasets,
    withdrawn_training_data,
)
from apps.lineage.tracing import require_traceable, start_tracing
from apps.rewards.models import ScoreSample
from apps.rewards.selectors import endpoints_of
from apps.training.models import RewardModel

PAGE = 50
MAX_LISTED = 30


@require_safe
@project_view(Role.RESEARCHER)
def lineage_list(request: ProjectRequest, project: Project) -> HttpResponse:
    """Every endpoint with its models, and everything affected by deletions."""
    rows = list(endpoints_of(project).prefetch_related("active__reward_models"))
    newest = newest_sample_by_endpoint(rows)
    endpoints = [(endpoint, newest.get(endpoint.pk)) for endpoint in rows]
    context = {
        "project": project,
        "endpoints": endpoints,
        "derivations": _with_samples(find_dataset_uses(withdrawn_datasets(project))),
    }
    return render(request, "lineage/lineage_list.html", context)


@require_http_methods(["GET", "HEAD", "POST"])
@project_view(Role.RESEARCHER)
def sample_lineage(request: ProjectRequest, project: Project, pk: int) -> HttpResponse:
    """POST computes the most influential feedback records: `model`, the primary key of the model."""
    sample = get_sample(project, pk)
    chain = served_models(sample)
    if request.method == "POST":
        model = next(
            (served.model for served in chain if str(served.model.pk) == request.POST.get("model")), None
        )
        if model is None:
            raise NotFound("This reward does not depend on that model.")
        try:
            start_tracing(sample=sample, model=model)
        except DomainError as error:
            messages.error(request, error.message)
        return redirect("lineage:sample-lineage", project.slug, pk)
    context = {
        "project": project,
        "sample": sample,
        "revision": sample.endpoint.revisions.filter(number=sample.version).first(),
        "chain": [(served, _annotators(served)) for served in chain],
    }
    return render(request, "lineage/sample_lineage.html", context | _influence_context(sample, chain))


@require_safe
@project_view(Role.RESEARCHER)
def sample_labels(request: ProjectRequest, project: Project, pk: int) -> HttpResponse:
    """The part of the page that changes while the influence is computed."""
    sample = get_sample(project, pk)
    context = {"project": project, "sample": sample} | _influence_context(sample, served_models(sample))
    return render(request, "lineage/_sample_labels.html", context)


@require_safe
@project_view(Role.RESEARCHER)
def dataset_labels(request: ProjectRequest, project: Project, pk: int) -> HttpResponse:
    """`?split=train|validation|test`, `?annotator=NAME`, `?page=1`: the records of a frozen dataset."""
    dataset_version = list_dataset_versions(project).filter(pk=pk).first()
    if dataset_version is None:
        raise NotFound(f"There is no dataset {pk} in this project.")
    require_frozen(dataset_version)
    split = request.GET.get("split", "train")
    split = split if split in SPLITS else "train"
    annotator = request.GET.get("annotator", "")
    page = request.GET.get("page", "1")
    number = max(1, int(page)) if page.isdecimal() and len(page) < 8 else 1
    labels, more = read_labels(
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
        "people": _annotator_rows(dataset_version.annotators, project),
    }
    return render(request, "lineage/dataset_labels.html", context)


@require_safe
@project_view(Role.RESEARCHER)
def item_lineage(request: ProjectRequest, project: Project, pk: int) -> HttpResponse:
    item = get_item(project, pk)
    context = {
        "project": project,
        "item": item,
        "derivations": _with_samples(find_dataset_uses(dataset_versions_with_item(item))),
    }
    return render(request, "lineage/item_lineage.html", context)


@require_safe
@project_view(Role.RESEARCHER)
def annotator_lineage(request: ProjectRequest, project: Project, pk: int) -> HttpResponse:
    annotator = Annotator.objects.filter(project=project, pk=pk).select_related("project").first()
    if annotator is None:
        raise NotFound(f"There is no annotator {pk} in this project.")
    derivations = _with_samples(find_dataset_uses(dataset_versions_with_annotator(annotator)))
    context = {"project": project, "annotator": annotator, "derivations": derivations}
    return render(request, "lineage/annotator_lineage.html", context)


@require_safe
@project_view(Role.RESEARCHER)
def model_uses(request: ProjectRequest, project: Project, pk: int) -> HttpResponse:
    """A line on a model's page: the endpoints that serve it, and deleted training data."""
    model = RewardModel.objects.filter(project=project, pk=pk).select_related("project").first()
    if model is None:
        raise NotFound(f"There is no model {pk} in this project.")
    context = {
        "project": project,
        "revisions": serving_revisions(model),
        "withdrawn": withdrawn_training_data(model),
    }
    return render(request, "lineage/_model_uses.html", context)


def _influence_context(sample: ScoreSample, chain: list[ServedModel]) -> dict[str, Any]:
    """The tracings of the sample, and the models whose influence can still be computed."""
    tracings = {tracing.model_id: tracing for tracing in sample.tracings.select_related("model__project")}
    found, open_models, unknown = [], [], []
    for served in chain:
        tracing = tracings.get(served.model.pk)
        try:
            _, dataset_version = require_traceable(served.model)
        except DomainError as error:
            unknown.append(error.message)
            continue
        if tracing is None or tracing.state in (JobState.FAILED, JobState.CANCELLED):
            open_models.append(served.model)
        if tracing is not None:
            succeeded = tracing.state == JobState.SUCCEEDED
            labels = most_influential_labels(dataset_version, tracing.result["moved"]) if succeeded else []
            found.append((tracing, labels, max((abs(label.influence or 0) for label in labels), default=0)))
    return {
        "tracings": found,
        "open_models": open_models,
        "unknown": unknown,
        "is_busy": any(not tracing.is_finished for tracing, _, _ in found),
    }


def _annotators(served: ServedModel) -> list[tuple[str, int, int | None]]:
    """The annotators of the training data: name, records and primary key; most records first."""
    if served.dataset_version is None:
        return []
    return _annotator_rows(served.dataset_version.annotators, served.dataset_version.project)


def _annotator_rows(annotators: dict[str, Any], project: Project) -> list[tuple[str, int, int | None]]:
    ordered = sorted(annotators.items(), key=lambda entry: (-entry[1]["records"], entry[0]))[:MAX_LISTED]
    rows = Annotator.objects.filter(project=project, name__in=[name for name, _ in ordered])
    keys = dict(rows.values_list("name", "pk"))
    return [(name, counts["records"], keys.get(name)) for name, counts in ordered]


def _with_samples(uses: list[DatasetUse]) -> list[tuple[DatasetUse, list[ScoreSample]]]:
    """Each with the newest sampled rewards that depend on it."""
    return [
        (
            dataset_use,
            [
                sample
                for model_use in dataset_use.models
                for revision in model_use.revisions[:1]
                for sample in newest_samples(revision)
            ][:MAX_LISTED],
        )
        for dataset_use in uses
    ]
