from typing import Any

from django.apps import AppConfig
from django.db.models.signals import post_migrate


class SemanticSearchConfig(AppConfig):
    name = "apps.semantic_search"
    label = "semantic_search"

    def ready(self) -> None:
        post_migrate.connect(_prepare, sender=self)

    def register(self) -> None:
        from apps.core.jobs import job_queue
        from apps.semantic_search.clustering import ADVANCE
        from apps.semantic_search.filter_conditions import cluster_condition
        from apps.semantic_search.models import TrajectoryClustering
        from apps.trajectories.filter_queries import register_condition

        job_queue.register(TrajectoryClustering, ADVANCE)
        register_condition(cluster_condition, {})


def _prepare(*, using: str, **_: Any) -> None:
    from apps.semantic_search.vectors import prepare_vector_index

    prepare_vector_index(using)
