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
        # accounts cannot import annotation, so it is a signal.
        post_delete.connect(_release_on_leaving, sender="accounts.Membership", dispatch_uid="free held items")

    def register(self) -> None:
        from apps.accounts import leaving
        from apps.annotation.account_closing import hide_names, release_items
        from apps.annotation.filter_conditions import annotation_condition, campaign_names
        from apps.annotation.services import (
            announce_completed_campaigns,
            expire_locks,
        )
        from apps.annotation.step_notes import notes
        from apps.annotation.visible_trajectories import shown_trajectories
        from apps.trajectories import notes as trajectory_notes
        from apps.trajectories import view_permissions
        from apps.trajectories.filter_queries import register_condition

        leaving.register("annotation", closing=release_items, deleting=hide_names)
        trajectory_notes.register(notes)
        view_permissions.register(shown_trajectories)
        register_condition(annotation_condition, {"campaign": campaign_names})
        periodic.register("expire locks", EXPIRE_EVERY_SECONDS, expire_locks)
        periodic.register("announce completed campaigns", DONE_EVERY_SECONDS, announce_completed_campaigns)


def _release_on_leaving(instance: Any, **more: Any) -> None:
    from apps.annotation.services import release_member_assignments

    release_member_assignments(project=instance.project, user=instance.user)
