from django.apps import AppConfig


class RewardsConfig(AppConfig):
    name = "apps.rewards"
    label = "rewards"

    def ready(self) -> None:
        from apps.core.jobs import periodic
        from apps.core.storage import encryption
        from apps.rewards import accounting, services

        encryption.register(
            encryption.EncryptedField(
                "rewards.ServerReplica",
                "key",
                lambda row: f"the key of the replica {row.address} of the server {row.server.name}",
            )
        )
        periodic.register("rewards.delete_expired", 300.0, accounting.delete_expired)
        periodic.register("rewards.advance_releases", 5.0, services.advance_releases)
