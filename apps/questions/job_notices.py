"""What people hear of questions when they are answered."""

from django.urls import reverse

from apps.inbox.job_notices import JobNotice
from apps.questions.models import TrajectoryQuestion


def question_notice(question: TrajectoryQuestion) -> JobNotice:
    path = reverse("questions:question-detail", args=[question.project.slug, question.pk])
    return JobNotice(question.project, question.created_by, f"Question {question.pk}", path)
