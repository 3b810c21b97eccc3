"""Comments on the page of a trajectory. Each answers with the comments, or without a script with the page."""

from typing import Any

from django import forms
from django.http import HttpResponse
from django.shortcuts import redirect, render
from django.urls import reverse
from django.views.decorators.http import require_POST

from apps.accounts.access import ProjectRequest, project_view
from apps.accounts.models import Project, Role
from apps.core.errors import DomainError
from apps.trajectories import comments
from apps.trajectories.models import Trajectory, TrajectoryComment
from apps.trajectories.selectors import require_trajectory
from apps.trajectories.views.trajectory_page import comment_context, step_context


class CommentForm(forms.Form):
    """sign: 1 praises, -1 blames. step: None for the full trajectory."""

    text = forms.CharField(max_length=TrajectoryComment.MAX_LENGTH)
    step = forms.IntegerField(required=False, min_value=0)
    sign = forms.TypedChoiceField(
        required=False, choices=[("", ""), ("1", ""), ("-1", "")], coerce=int, empty_value=None
    )


@require_POST
@project_view(Role.RESEARCHER)
def comment_create(request: ProjectRequest, project: Project, pk: int) -> HttpResponse:
    trajectory = require_trajectory(project, pk)
    comment = comments.create_comment(trajectory=trajectory, by=request.user, **_values(request))
    return _answer(request, project, trajectory, {comment.step})


@require_POST
@project_view(Role.RESEARCHER)
def comment_edit(request: ProjectRequest, project: Project, pk: int, comment: int) -> HttpResponse:
    trajectory = require_trajectory(project, pk)
    row = comments.get_comment(trajectory, comment)
    before = row.step
    comments.edit_comment(comment=row, by=request.user, **_values(request))
    return _answer(request, project, trajectory, {before, row.step})


@require_POST
@project_view(Role.RESEARCHER)
def comment_delete(request: ProjectRequest, project: Project, pk: int, comment: int) -> HttpResponse:
    trajectory = require_trajectory(project, pk)
    row = comments.get_comment(trajectory, comment)
    is_owner = Role(request.membership.role).includes(Role.OWNER)
    comments.delete_comment(comment=row, by=request.user, is_owner=is_owner)
    return _answer(request, project, trajectory, {row.step})


def _values(request: ProjectRequest) -> dict[str, Any]:
    form = CommentForm(request.POST)
    if not form.is_valid():
        name, errors = next(iter(form.errors.items()))
        raise DomainError(f"{name.capitalize()} of the comment: {errors[0]}", pointer=f"/{name}")
    return dict(form.cleaned_data)


def _answer(
    request: ProjectRequest, project: Project, trajectory: Trajectory, steps: set[int | None]
) -> HttpResponse:
    """steps: whose cards show comments that changed."""
    if not request.htmx:  # type: ignore[attr-defined]
        url = reverse("trajectories:trajectory-detail", args=[project.slug, trajectory.pk])
        shown = next((step for step in steps if step is not None), None)
        return redirect(
            f"{url}#comments" if shown is None else f"{url}?step={shown}#t{trajectory.pk}-s{shown}"
        )
    context = step_context(request, project, trajectory) | comment_context(request, trajectory)
    context["changed_steps"] = sorted(step for step in steps if step is not None)
    return render(request, "trajectories/_comments.html", context)
