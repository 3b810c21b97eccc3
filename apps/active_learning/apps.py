from django.apps import AppConfig

LOOK_EVERY_SECONDS = 2.0
FORGET_EVERY_SECONDS = 600.0


class ActiveLearningConfig(AppConfig):
    name = "apps.active_learning"
    label = "active_learning"

    def ready(self) -> None:
        from apps.active_learning.models import ItemSelection
        from apps.active_learning.services import ADVANCE, forget_deleted, select_where_due
        from apps.core.jobs import job_queue, periodic

        job_queue.register(ItemSelection, ADVANCE)
        periodic.register("choose what to label next", LOOK_EVERY_SECONDS, select_where_due)
        periodic.register("forget features of deleted runs", FORGET_EVERY_SECONDS, forget_deleted)
