"""`{% load jobs %}`: where a queued job stands."""

from django import template

from apps.core.jobs.job_queue import Job
from apps.core.jobs.queue_position import queue_position

register = template.Library()


@register.filter
def queue_words(job: Job) -> str:
    """Such as "2nd in the queue, 1 running, about 8 min"; empty for a job that is not queued."""
    position = queue_position(job)
    return "" if position is None else position.words
