"""Pages of reward programs, for researchers."""

from django.urls import path

from apps.reward_programs import views

app_name = "reward_programs"
urlpatterns = [
    path("", views.program_list, name="program-list"),
    path("create/", views.program_create, name="program-create"),
    path("draft/", views.program_draft, name="program-draft"),
    path("<int:pk>/", views.program_detail, name="program-detail"),
    path("<int:pk>/accept/", views.program_accept, name="program-accept"),
    path("<int:pk>/delete/", views.program_delete, name="program-delete"),
    path("jobs/<int:pk>/", views.job_detail, name="job-detail"),
    path("jobs/<int:pk>/status/", views.job_status, name="job-status"),
    path("jobs/<int:pk>/cancel/", views.job_cancel, name="job-cancel"),
]
