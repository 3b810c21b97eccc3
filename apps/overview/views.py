"""The home of a project: what to do next, what needs attention, what runs, what happened."""

from typing import Any

from django.http import HttpResponse
from django.shortcuts import redirect, render
from django.urls import reverse
from django.views.decorators.http import require_POST, require_safe

from apps.accounts.access import ProjectRequest, project_view, sees_models
from apps.accounts.models import Project, Role
from apps.annotation import services as annotation_services
from apps.annotation.own_progress import my_campaigns
from apps.overview.activity import recent_activity
from apps.overview.attention import agreement_notes, attention_notes
from apps.overview.checklist import checklist_steps, dismiss_checklist, is_dismissed, restore_checklist
from apps.overview.feedback_loop import loop_stages
from apps.overview.project_jobs import running_jobs

MANY_LINES = 60


@project_view()
@require_safe
def project_home(request: ProjectRequest, project: Project) -> HttpResponse:
    if Role(request.membership.role).includes(Role.RESEARCHER):
        return render(request, "overview/project_home.html", _home_context(request, project))
    annotator = annotation_services.annotator_for(project=project, user=request.user)
    context: dict[str, Any] = {"project": project, "mine": my_campaigns(project, annotator)}
    if sees_models(request.membership):
        context["stages"] = loop_stages(project, only=("training", "rewards"))
    return render(request, "overview/project_work.html", context)


@project_view(Role.RESEARCHER)
@require_POST
def checklist_show(request: ProjectRequest, project: Project) -> HttpResponse:
    """Hide the checklist from this person, or show it again."""
    change = restore_checklist if "again" in request.POST else dismiss_checklist
    change(project=project, user=request.user)
    return redirect("accounts:project-home", project.slug)


@project_view(Role.RESEARCHER)
@require_safe
def running_job_list(request: ProjectRequest, project: Project) -> HttpResponse:
    context = {"project": project, "jobs": running_jobs(project)}
    return render(request, "overview/_running_jobs.html", context)


@project_view(Role.RESEARCHER)
@require_safe
def agreement_list(request: ProjectRequest, project: Project) -> HttpResponse:
    return render(request, "overview/_attention_notes.html", {"notes": agreement_notes(project)})


@project_view(Role.RESEARCHER)
@require_safe
def activity_list(request: ProjectRequest, project: Project) -> HttpResponse:
    """A part of the home, or a page with more lines."""
    if request.htmx:  # type: ignore[attr-defined]
        return render(request, "overview/_activity.html", {"lines": recent_activity(project)})
    context = {"project": project, "lines": recent_activity(project, MANY_LINES)}
    return render(request, "overview/activity.html", context)


def _home_context(request: ProjectRequest, project: Project) -> dict[str, Any]:
    steps = checklist_steps(project)
    done = sum(step.is_done for step in steps)
    dismissed = is_dismissed(project, request.user)
    return {
        "project": project,
        "steps": steps,
        "done": done,
        "shows_checklist": done < len(steps) and not dismissed,
        "can_restore": done < len(steps) and dismissed,
        "notes": attention_notes(project),
        "jobs": running_jobs(project),
        "stages": loop_stages(project),
        "times_url": reverse("retraining:cycle-times", args=[project.slug]),
    }
