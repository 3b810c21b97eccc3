from django.apps import AppConfig

MAIL_EVERY_SECONDS = 10.0
FORGET_EVERY_SECONDS = 3600.0


class InboxConfig(AppConfig):
    name = "apps.inbox"
    label = "inbox"

    def register(self) -> None:
        from apps.core.jobs import job_queue, periodic
        from apps.inbox import job_notices
        from apps.inbox.mail import nudge_due_mail
        from apps.inbox.services import forget_old_notifications

        job_queue.ENDED_LISTENERS.add(job_notices.report_end)
        job_notices.LISTENERS.add(job_notices.notify_starter)
        periodic.register("mail notifications", MAIL_EVERY_SECONDS, nudge_due_mail)
        periodic.register("forget old notifications", FORGET_EVERY_SECONDS, forget_old_notifications)
