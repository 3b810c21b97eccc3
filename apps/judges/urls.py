"""Pages of judges and their runs, for researchers."""

from django.urls import path

from apps.judges import views

app_name = "judges"
urlpatterns = [
    path("judges/", views.judge_list, name="judge-list"),
    path("judges/<int:pk>/", views.judge_detail, name="judge-detail"),
    path("judges/<int:pk>/delete/", views.judge_delete, name="judge-delete"),
    path("judges/<int:pk>/test/", views.judge_test, name="judge-test"),
    path("judges/<int:pk>/run/", views.judge_run_start, name="judge-run-start"),
    path("judge-runs/<int:pk>/", views.judge_run_detail, name="judge-run-detail"),
    path("judge-runs/<int:pk>/status/", views.judge_run_status, name="judge-run-status"),
    path("judge-runs/<int:pk>/cancel/", views.judge_run_cancel, name="judge-run-cancel"),
    path("judge-runs/<int:pk>/retry/", views.judge_run_retry, name="judge-run-retry"),
    path("judge-runs/<int:pk>/save/", views.judge_run_save, name="judge-run-save"),
]
