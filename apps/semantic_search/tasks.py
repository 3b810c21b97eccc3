"""Clusters of trajectories, on the workers that compute."""

from apps.core.jobs import job_queue
from apps.core.jobs.celery_app import shared_task
from apps.semantic_search.clustering import execute
from apps.semantic_search.models import TrajectoryClustering


@shared_task
def advance_clusterings() -> None:
    """Compute every clustering that is waiting."""
    job_queue.drain_queue(TrajectoryClustering, execute)
