"""Fragments of pages of jobs, which are asked for again until the job ends."""

from collections.abc import Mapping
from typing import Any

from django.http import HttpRequest, HttpResponse
from django.shortcuts import render


def job_fragment(
    request: HttpRequest, template: str, context: Mapping[str, Any], *, is_finished: bool
) -> HttpResponse:
    """The state of a job; once it has ended, the whole page is loaded again, since more of it changes."""
    response = render(request, template, context)
    if is_finished:
        response["HX-Refresh"] = "true"
    return response
