from django.apps import AppConfig

FORGET_EVERY_SECONDS = 3600.0
MAIL_EVERY_SECONDS = 3.0


class AccountsConfig(AppConfig):
    name = "apps.accounts"
    label = "accounts"

    def ready(self) -> None:
        from apps.accounts.account_links import forget_old_links, send_due_links
        from apps.accounts.idempotency import forget_old_answers
        from apps.accounts.login_guard import forget_old_counters
        from apps.accounts.sessions import forget_ended_sessions
        from apps.core import periodic

        periodic.register("forget old answers", FORGET_EVERY_SECONDS, forget_old_answers)
        periodic.register("forget old links", FORGET_EVERY_SECONDS, forget_old_links)
        periodic.register("forget old failures", FORGET_EVERY_SECONDS, forget_old_counters)
        periodic.register("forget ended sessions", FORGET_EVERY_SECONDS, forget_ended_sessions)
        periodic.register("mail links", MAIL_EVERY_SECONDS, send_due_links)
