from django.apps import AppConfig


class LLMConfig(AppConfig):
    name = "apps.llm"
    label = "llm"

    def register(self) -> None:
        from apps.core.storage import encryption

        encryption.register(
            encryption.EncryptedField(
                "llm.LLMConnection",
                "key",
                lambda row: f"the key of the LLM connection {row.name} of {row.project.slug}",
                former_models=("judges.LanguageModel",),
            )
        )
