from django.apps import AppConfig

DUE_EVERY_SECONDS = 30.0


class ConnectorsConfig(AppConfig):
    name = "apps.connectors"
    label = "connectors"

    def register(self) -> None:
        from apps.connectors import services
        from apps.connectors.job_notices import connector_run_notice
        from apps.connectors.models import ConnectorRun
        from apps.core.jobs import job_queue, periodic
        from apps.core.storage import encryption
        from apps.inbox import job_notices

        encryption.register(
            encryption.EncryptedField(
                "connectors.Connector",
                "secret",
                lambda row: f"the key of the connector {row.name} of {row.project.slug}",
            )
        )
        job_notices.register(ConnectorRun, connector_run_notice)
        job_queue.register(ConnectorRun, services.ADVANCE_RUNS, services.settle_run)
        periodic.register("start connector runs", DUE_EVERY_SECONDS, services.start_due_runs)
