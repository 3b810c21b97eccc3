from django.apps import AppConfig

NUDGE_EVERY_SECONDS = 5.0
FORGET_EVERY_SECONDS = 3600.0


class WebhooksConfig(AppConfig):
    name = "apps.webhooks"
    label = "webhooks"

    def register(self) -> None:
        from apps.core.jobs import periodic
        from apps.core.storage import encryption
        from apps.inbox import job_notices
        from apps.webhooks.services import announce_job, forget_old, nudge_due

        encryption.register(
            encryption.EncryptedField(
                "webhooks.Webhook",
                "secret",
                lambda row: (
                    f"the secret of the webhook of {row.project.slug} to {row.host}: create a new one"
                ),
            )
        )
        encryption.register(
            encryption.EncryptedField(
                "webhooks.Webhook",
                "address",
                lambda row: (
                    f"the address of the chat webhook of {row.project.slug} at {row.host}: remove it and add it again"
                ),
            )
        )
        job_notices.LISTENERS.add(announce_job)
        periodic.register("send webhooks", NUDGE_EVERY_SECONDS, nudge_due)
        periodic.register("forget old webhook messages", FORGET_EVERY_SECONDS, forget_old)
