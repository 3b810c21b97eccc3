from django.apps import AppConfig


class RewardsConfig(AppConfig):
    name = "apps.rewards"
    label = "rewards"

    def ready(self) -> None:
        from apps.core.jobs import periodic
        from apps.rewards import accounting, services

        periodic.register("rewards.delete_expired", 300.0, accounting.delete_expired)
        periodic.register("rewards.advance_releases", 5.0, services.advance_releases)
