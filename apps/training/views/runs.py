"""Pages of training runs: create, watch, cancel, resume, compare."""

import json
from datetime import timedelta
from typing import Any

from django.db import transaction
from django.http import HttpResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.utils import timezone
from django.views.decorators.http import require_http_methods, require_POST, require_safe

from apps.accounts.access import ProjectRequest, project_view
from apps.accounts.models import Project, Role
from apps.core.errors import DomainError
from apps.core.http.api import paginate
from apps.core.jobs.job_queue import JobState
from apps.core.number_parsing import whole_number
from apps.datasets.models import DatasetVersion
from apps.training import recipes, services
from apps.training.curves import chart_in_words, curves, messages, overlaid_curves
from apps.training.estimate import estimate
from apps.training.forms import RunForm
from apps.training.groups import by_seed, differences, side_by_side
from apps.training.models import OWN, TrainingRun
from apps.training.pretrained import with_names
from apps.training.report import report_context
from apps.training.run_trackers import seconds_to_end
from apps.training.selectors import events_after, possible_parents, run_folder, runs_of
from apps.training.tracker_options import TrackerOptions, tracker_results
from workers.schema.recipe import Recipe, recipe_to_dict
from workers.schema.recipe_help import PURPOSES, REASONS

_PAGE = 50
_TRACKERS_NOTED = 60.0  # seconds after the trackers of a run have ended, until its row says so
_MAX_COMPARED = 8  # the number of colours
_CHARTS = (
    ("validation", "Validation loss"),
    ("accuracy", "Validation accuracy"),
    ("training", "Training loss"),
)


@require_safe
@project_view(Role.RESEARCHER)
def run_list(request: ProjectRequest, project: Project) -> HttpResponse:
    cursor = request.GET.get("cursor")
    page, next_cursor = paginate(runs_of(project), cursor=cursor, limit=_PAGE)
    context = {
        "project": project,
        "groups": by_seed(page),
        "next_cursor": next_cursor,
        "first": not cursor,
        "has_dataset": DatasetVersion.objects.filter(project=project, state=JobState.SUCCEEDED).exists(),
    }
    return render(request, "training/run_list.html", context)


@require_safe
@project_view(Role.RESEARCHER)
def run_compare(request: ProjectRequest, project: Project) -> HttpResponse:
    """run: numbers of runs, separated by commas."""
    given = ",".join(request.GET.getlist("run")).split(",")
    numbers = list(dict.fromkeys(number for text in given if (number := whole_number(text)) is not None))[
        :_MAX_COMPARED
    ]
    found = {run.pk: run for run in runs_of(project).filter(pk__in=numbers)}
    runs = [found[number] for number in numbers if number in found]
    charts = overlaid_curves((f"run {run.pk}", events_after(run)) for run in runs)
    context = {
        "project": project,
        "runs": runs,
        "most": _MAX_COMPARED,
        "drawings": [
            (name, title, charts[name], chart_in_words(charts[name]))
            for name, title in _CHARTS
            if charts[name]["series"]
        ],
        "differences": differences(runs),
        "rows": side_by_side(runs),
    }
    return render(request, "training/run_compare.html", context)


@require_http_methods(["GET", "HEAD", "POST"])
@project_view(Role.RESEARCHER)
def run_create(request: ProjectRequest, project: Project) -> HttpResponse:
    form = RunForm(request.POST or None, project=project, initial=_initial(request, project))
    if request.method == "POST" and form.is_valid():
        try:
            run = _start(request, project, form)
            return redirect("training:run-detail", project.slug, run.pk)
        except DomainError as error:
            form.add_domain_error(error)
    context = {
        "project": project,
        "form": form,
        "has_dataset": DatasetVersion.objects.filter(project=project, state=JobState.SUCCEEDED).exists(),
        **_estimate_context(form),
    }
    return render(request, "training/run_create.html", context, status=422 if form.errors else 200)


@require_POST
@project_view(Role.RESEARCHER)
def run_estimate(request: ProjectRequest, project: Project) -> HttpResponse:
    """An estimate for the current form, and every key of its recipe. Nothing is started."""
    form = RunForm(request.POST, project=project)
    form.is_valid()
    return render(request, "training/_run_foreseen.html", {"project": project, **_estimate_context(form)})


def _estimate_context(form: RunForm) -> dict[str, Any]:
    """For a form that is not submitted yet: of the first dataset and recipe."""
    dataset_version, recipe, wrong = form.selection()
    values = recipe_to_dict(recipe or Recipe())
    defaults = recipe_to_dict(Recipe())
    return {
        "wrong": wrong,
        "foreseen": estimate(dataset_version, values)
        if dataset_version is not None and recipe is not None
        else None,
        "keys": [
            (key, recipes.toml(value), value != defaults[key], PURPOSES[key], REASONS[key])
            for key, value in values.items()
        ],
    }


def _initial(request: ProjectRequest, project: Project) -> dict[str, Any]:
    """like: a run to duplicate, with the next seed. parent: a model to fine-tune, by its own recipe."""
    like, parent = (whole_number(request.GET.get(name, "")) for name in ("like", "parent"))
    if like is None and parent is not None:
        model = get_object_or_404(possible_parents(project), pk=parent)
        recipe = recipes.as_toml(recipes.fine_tuning_recipe(model))
        return {
            "parent": parent,
            "recipe": OWN,
            "toml": recipe,
            "dataset": request.GET.get("dataset"),
        }
    if like is None:
        return {"dataset": request.GET.get("dataset")}
    run = get_object_or_404(runs_of(project), pk=like)
    options = TrackerOptions.read(run.tracker_options)
    return {
        "dataset": run.dataset_version_id,
        "recipe": OWN,
        "toml": recipes.as_toml(with_names(run.recipe)),
        "name": run.model_name,
        "parent": run.parent_id,
        "seed": run.seed + 1,
        "track": list(options.trackers),
        "track_project": options.project,
        "track_weights": options.weights,
    }


@transaction.atomic
def _start(request: ProjectRequest, project: Project, form: RunForm) -> TrainingRun:
    given = form.cleaned_data
    recipe: Any = given["recipe"]
    if form.is_own:
        recipe = recipes.check(given["toml"])
        if given["save_as"]:
            services.save_recipe(project=project, name=given["save_as"], toml=given["toml"], by=request.user)
            recipe = given["save_as"]
    return services.start_run(
        project=project,
        dataset_version=given["dataset"],
        recipe=recipe,
        name=given["name"],
        seed=given["seed"],
        parent=given["parent"],
        track=given["track"],
        track_project=given["track_project"],
        track_weights=given["track_weights"],
        by=request.user,
    )


@require_safe
@project_view(Role.RESEARCHER)
def run_detail(request: ProjectRequest, project: Project, pk: int) -> HttpResponse:
    run = get_object_or_404(runs_of(project), pk=pk)
    return render(request, "training/run_detail.html", run_context(project, run))


@require_safe
@project_view(Role.RESEARCHER)
def run_status(request: ProjectRequest, project: Project, pk: int) -> HttpResponse:
    """The part of the page that changes during a run; once the run has ended, the page is reloaded.

    part=trackers: of an ended run, what became of it at its trackers, which end after it.
    """
    run = get_object_or_404(runs_of(project), pk=pk)
    if request.GET.get("part") == "trackers":
        return render(request, "training/_run_trackers.html", run_context(project, run))
    response = render(request, "training/_run_status.html", run_context(project, run) | {"out_of_band": True})
    if run.is_finished:
        response["HX-Refresh"] = "true"
    return response


@require_POST
@project_view(Role.RESEARCHER)
def run_cancel(request: ProjectRequest, project: Project, pk: int) -> HttpResponse:
    run = get_object_or_404(runs_of(project), pk=pk)
    services.cancel_run(run=run, by=request.user)
    return redirect("training:run-detail", project.slug, run.pk)


@require_POST
@project_view(Role.RESEARCHER)
def run_resume(request: ProjectRequest, project: Project, pk: int) -> HttpResponse:
    run = get_object_or_404(runs_of(project), pk=pk)
    services.resume_run(run=run, by=request.user)
    return redirect("training:run-detail", project.slug, run.pk)


def run_context(project: Project, run: TrainingRun) -> dict[str, Any]:
    events = events_after(run)
    charts = curves(events)
    return {
        "project": project,
        "run": run,
        "model": getattr(run, "model", None),
        "curves": {name: json.dumps(drawing) for name, drawing in charts.items()},
        "descriptions": {name: chart_in_words(drawing) for name, drawing in charts.items()},
        "messages_of_run": messages(events),
        "trackers": tracker_results(run.tracker_options, run.tracker_states, is_finished=run.is_finished),
        "are_trackers_ending": _are_trackers_ending(run),
        **report_context(run.report, project),
        "can_resume": run.state in (JobState.FAILED, JobState.CANCELLED),
    }


def _are_trackers_ending(run: TrainingRun) -> bool:
    """Whether trackers of the ended run may still be sent something, as far as is known here."""
    options = TrackerOptions.read(run.tracker_options)
    if run.finished_at is None or not run.is_finished or not options.trackers:
        return False
    seconds = seconds_to_end(options, run_folder(run), run.state) + _TRACKERS_NOTED
    return timezone.now() - run.finished_at < timedelta(seconds=seconds)
