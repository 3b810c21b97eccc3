from django.apps import AppConfig


class RewardsConfig(AppConfig):
    name = "apps.rewards"
    label = "rewards"

    def register(self) -> None:
        from apps.core.jobs import periodic
        from apps.core.storage import encryption
        from apps.reward_programs import program_uses
        from apps.rewards import accounting, services
        from apps.rewards.program_endpoints import endpoints_with_program

        encryption.register(
            encryption.EncryptedField(
                "rewards.ServerReplica",
                "key",
                lambda row: f"the key of the replica {row.address} of the server {row.server.name}",
            )
        )
        program_uses.register(endpoints_with_program)
        periodic.register("rewards.delete_expired", 300.0, accounting.delete_expired)
        periodic.register("rewards.advance_releases", 5.0, services.advance_releases)
