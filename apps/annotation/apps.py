from typing import Any

from django.apps import AppConfig
from django.db.models.signals import post_delete

from apps.core.jobs import periodic

EXPIRE_EVERY_SECONDS = 30
DONE_EVERY_SECONDS = 10


class AnnotationConfig(AppConfig):
    name = "apps.annotation"
    label = "annotation"

    def ready(self) -> None:
        from apps.accounts import leaving
        from apps.accounts.models import Membership
        from apps.annotation.leaving import hide_names, release_items
        from apps.annotation.notes import notes
        from apps.annotation.services import expire_locks, note_done, release_all
        from apps.annotation.viewing import shown_trajectories
        from apps.trajectories import notes as trajectory_notes
        from apps.trajectories import view_permissions

        def free_what_she_holds(instance: Membership, **more: Any) -> None:
            release_all(project=instance.project, user=instance.user)

        # accounts knows nothing of annotation; hence a signal.
        post_delete.connect(
            free_what_she_holds, sender=Membership, weak=False, dispatch_uid="free held items"
        )

        leaving.register("annotation", closing=release_items, deleting=hide_names)
        trajectory_notes.register(notes)
        view_permissions.register(shown_trajectories)
        periodic.register("expire locks", EXPIRE_EVERY_SECONDS, expire_locks)
        periodic.register("tell of campaigns that are done", DONE_EVERY_SECONDS, note_done)
