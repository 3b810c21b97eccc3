"""What people hear of the jobs of this app when they end."""

from django.urls import reverse

from apps.inbox.job_notices import JobNotice
from apps.judges.models import JudgeRun


def judge_run_notice(judge_run: JudgeRun) -> JobNotice:
    project = judge_run.judge.project
    path = reverse("judges:judge-run-detail", args=[project.slug, judge_run.pk])
    return JobNotice(project, judge_run.created_by, f"The run of the judge {judge_run.judge.name}", path)
