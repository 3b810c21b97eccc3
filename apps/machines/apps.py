from django.apps import AppConfig

FORGET_EVERY_SECONDS = 3600.0


class MachinesConfig(AppConfig):
    name = "apps.machines"
    label = "machines"

    def register(self) -> None:
        from apps.core.jobs import periodic
        from apps.core.storage import encryption
        from apps.machines.services import forget_old_tokens

        encryption.register(
            encryption.EncryptedField(
                "machines.MachineJob",
                "secret",
                lambda row: f"the token of the job {row.name}: it is submitted again with another one",
            )
        )
        periodic.register("forget old join tokens", FORGET_EVERY_SECONDS, forget_old_tokens)
