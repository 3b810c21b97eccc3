"""The button that opens the sample project."""

from typing import cast

from django.contrib.auth.decorators import login_required
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect
from django.views.decorators.http import require_POST

from apps.accounts.models import User
from apps.demo.sample_loads import open_sample


@login_required
@require_POST
def sample_open(request: HttpRequest) -> HttpResponse:
    project = open_sample(by=cast(User, request.user))
    return redirect("accounts:project-home", project.slug)
