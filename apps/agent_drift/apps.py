from django.apps import AppConfig

CHECK_EVERY_SECONDS = 600


class AgentDriftConfig(AppConfig):
    name = "apps.agent_drift"
    label = "agent_drift"

    def register(self) -> None:
        from apps.agent_drift.services import check_agents
        from apps.core.jobs import periodic

        periodic.register("compare agent versions", CHECK_EVERY_SECONDS, check_agents)
