from django.apps import AppConfig

FORGET_EVERY_SECONDS = 3600.0


class AccountsConfig(AppConfig):
    name = "apps.accounts"
    label = "accounts"

    def ready(self) -> None:
        from apps.accounts.idempotency import forget_old_answers
        from apps.core import periodic

        periodic.register("forget old answers", FORGET_EVERY_SECONDS, forget_old_answers)
