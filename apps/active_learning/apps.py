from django.apps import AppConfig

LOOK_EVERY_SECONDS = 2.0
FORGET_EVERY_SECONDS = 600.0


class ActiveLearningConfig(AppConfig):
    name = "apps.active_learning"
    label = "active_learning"

    def register(self) -> None:
        from apps.active_learning.models import ItemSelection
        from apps.active_learning.services import ADVANCE, delete_orphaned_features, select_due_plans
        from apps.core.jobs import job_queue, periodic

        job_queue.register(ItemSelection, ADVANCE)
        periodic.register("choose what to label next", LOOK_EVERY_SECONDS, select_due_plans)
        periodic.register("forget features of deleted runs", FORGET_EVERY_SECONDS, delete_orphaned_features)
