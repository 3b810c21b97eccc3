from django.apps import AppConfig

COMPLETE_EVERY_SECONDS = 60


class KeyNodesConfig(AppConfig):
    name = "apps.key_nodes"
    label = "key_nodes"

    def register(self) -> None:
        from apps.core.jobs import periodic
        from apps.datasets import derived_records
        from apps.key_nodes.columns import COMPLETION_COLUMN
        from apps.key_nodes.derived import SOURCE
        from apps.key_nodes.nudges import nudge_completions
        from apps.key_nodes.step_marks import key_node_marks
        from apps.trajectories import explorer_columns, step_marks

        explorer_columns.register(COMPLETION_COLUMN)
        step_marks.register(key_node_marks)
        derived_records.register(SOURCE)
        periodic.register("complete key nodes", COMPLETE_EVERY_SECONDS, nudge_completions)
