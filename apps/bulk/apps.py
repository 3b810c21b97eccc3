from django.apps import AppConfig

# Chunks wait for hours while the workers that were nudged go on from one to the next: nudges would only pile up.
NUDGES = 1


class BulkConfig(AppConfig):
    name = "apps.bulk"
    label = "bulk"

    def register(self) -> None:
        from apps.bulk.filter_conditions import endpoint_names, score_condition
        from apps.bulk.models import BulkChunk
        from apps.bulk.selectors import of_active_jobs, unserved_since
        from apps.bulk.services import ADVANCE, settle_job
        from apps.core.jobs import job_queue
        from apps.trajectories.filter_queries import register_condition

        register_condition(score_condition, {"endpoint": endpoint_names})
        job_queue.register(
            BulkChunk, ADVANCE, settle_job, among=of_active_jobs(), waits_since=unserved_since, nudges=NUDGES
        )
