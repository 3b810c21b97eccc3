from django.apps import AppConfig


class TaskDifficultyConfig(AppConfig):
    name = "apps.task_difficulty"
    label = "task_difficulty"
