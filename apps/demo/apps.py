from django.apps import AppConfig


class DemoConfig(AppConfig):
    name = "apps.demo"
    label = "demo"

    def register(self) -> None:
        from apps.core.jobs import job_queue
        from apps.demo.models import SampleLoad
        from apps.demo.sample_loads import LOAD_SAMPLES

        job_queue.register(SampleLoad, LOAD_SAMPLES)
