from django.apps import AppConfig

LOOK_EVERY_SECONDS = 20.0
TURN_EVERY_SECONDS = 2.0
MAIL_EVERY_SECONDS = 10.0
FORGET_EVERY_SECONDS = 600.0


class MonitoringConfig(AppConfig):
    name = "apps.monitoring"
    label = "monitoring"

    def ready(self) -> None:
        from apps.core.jobs import job_queue, periodic
        from apps.monitoring.mail import send_due
        from apps.monitoring.models import Comparing
        from apps.monitoring.services import forget_old, look
        from apps.monitoring.turning import COMPARE, advance_turns, learn_online

        job_queue.register(Comparing, COMPARE)

        periodic.register("look at what endpoints score", LOOK_EVERY_SECONDS, look)
        periodic.register("send mail of alerts", MAIL_EVERY_SECONDS, send_due)
        periodic.register("learn from verifiers", LOOK_EVERY_SECONDS, learn_online)
        periodic.register("turn the circle", TURN_EVERY_SECONDS, advance_turns)
        periodic.register("forget old readings", FORGET_EVERY_SECONDS, forget_old)
