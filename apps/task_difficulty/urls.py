"""Pages of the difficulty of tasks, for researchers."""

from django.urls import path

from apps.task_difficulty import views

app_name = "task_difficulty"
urlpatterns = [
    path("", views.task_difficulty, name="task-difficulty"),
    path("export/", views.tasks_export, name="tasks-export"),
]
