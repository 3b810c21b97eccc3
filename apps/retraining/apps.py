from django.apps import AppConfig

ADVANCE_EVERY_SECONDS = 2.0
LEARN_EVERY_SECONDS = 20.0


class RetrainingConfig(AppConfig):
    name = "apps.retraining"
    label = "retraining"

    def register(self) -> None:
        from apps.core.jobs import job_queue, periodic
        from apps.monitoring import extensions
        from apps.retraining.alert_actions import act_on_alert
        from apps.retraining.cycle import ADVANCE_COMPARISONS, advance_cycles, start_online_cycles
        from apps.retraining.models import ModelComparison
        from apps.retraining.selectors import count_judgements

        job_queue.register(ModelComparison, ADVANCE_COMPARISONS)
        extensions.register_alert_action(act_on_alert)
        extensions.register_row_enrichment(count_judgements)
        periodic.register("start online retraining", LEARN_EVERY_SECONDS, start_online_cycles)
        periodic.register("advance retraining cycles", ADVANCE_EVERY_SECONDS, advance_cycles)
