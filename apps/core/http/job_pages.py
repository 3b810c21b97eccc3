"""Fragments of pages of jobs, which are asked for again until the job ends."""

from collections.abc import Mapping
from typing import Any

from django.db.models import Model
from django.http import HttpRequest, HttpResponse
from django.shortcuts import render

from apps.core.jobs.job_queue import Job


def job_fragment(
    request: HttpRequest, template: str, context: Mapping[str, Any], *, is_finished: bool
) -> HttpResponse:
    """The state of a job; once it has ended, the whole page is loaded again, since more of it changes."""
    response = render(request, template, context)
    if is_finished:
        response["HX-Refresh"] = "true"
    return response


def job_state_fragment(request: HttpRequest, project: Model, job: Job, job_urls: str) -> HttpResponse:
    """The state of a job that needs nothing of its page. job_urls: the beginning of the names of its pages "-status"
    and "-cancel"."""
    context = {"project": project, "job": job, "job_urls": job_urls}
    return job_fragment(request, "components/_job_status.html", context, is_finished=job.is_finished)
