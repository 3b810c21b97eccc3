from django.apps import AppConfig

CHECK_EVERY_SECONDS = 20.0
MAIL_EVERY_SECONDS = 10.0
DELETE_EVERY_SECONDS = 600.0


class MonitoringConfig(AppConfig):
    name = "apps.monitoring"
    label = "monitoring"

    def register(self) -> None:
        from apps.core.jobs import periodic
        from apps.monitoring.mail import send_due_emails
        from apps.monitoring.services import check_endpoints, delete_old_readings

        periodic.register("check what endpoints score", CHECK_EVERY_SECONDS, check_endpoints)
        periodic.register("send alert emails", MAIL_EVERY_SECONDS, send_due_emails)
        periodic.register("delete old readings", DELETE_EVERY_SECONDS, delete_old_readings)
