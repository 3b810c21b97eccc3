from django.apps import AppConfig


class MetricsConfig(AppConfig):
    name = "apps.metrics"
    label = "metrics"

    def register(self) -> None:
        from apps.annotation.feedback import exports
        from apps.core.jobs import job_queue
        from apps.datasets import derived_records, erased_words
        from apps.inbox import job_notices
        from apps.metrics.derived import SOURCES
        from apps.metrics.guidelines import DESCRIPTION, export_guidelines
        from apps.metrics.job_notices import induction_notice
        from apps.metrics.models import Induction
        from apps.metrics.services.erased_comments import erase_comment_words
        from apps.metrics.services.inductions import ADVANCE

        job_notices.register(Induction, induction_notice)
        job_queue.register(Induction, ADVANCE)
        erased_words.register("metrics", erase_comment_words)
        exports.register("guidelines", export_guidelines, DESCRIPTION, ending="md")
        for source in SOURCES:
            derived_records.register(source)
