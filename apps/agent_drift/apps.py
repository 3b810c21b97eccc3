from django.apps import AppConfig

CHECK_EVERY_SECONDS = 600


class AgentDriftConfig(AppConfig):
    name = "apps.agent_drift"
    label = "agent_drift"

    def register(self) -> None:
        from apps.core.jobs import periodic

        periodic.register("compare agent versions", CHECK_EVERY_SECONDS, _check_agents)


def _check_agents() -> None:
    """Loads scipy when it is due, not in every process that has the registry."""
    from apps.agent_drift.services import check_agents

    check_agents()
