from django.apps import AppConfig


class JudgesConfig(AppConfig):
    name = "apps.judges"
    label = "judges"

    def ready(self) -> None:
        from apps.core.jobs import job_queue
        from apps.core.storage import encryption
        from apps.judges.models import Judging
        from apps.judges.services.judgings import ADVANCE

        encryption.register(
            encryption.EncryptedField(
                "judges.LanguageModel",
                "key",
                lambda row: f"the key of the language model {row.name} of {row.project.slug}",
            )
        )
        job_queue.register(Judging, ADVANCE)
