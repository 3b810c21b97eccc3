"""Pages of reward studies, for researchers."""

from django.urls import path

from apps.reward_studies import views

app_name = "reward_studies"
urlpatterns = [
    path("", views.study_list, name="study-list"),
    path("create/", views.study_create, name="study-create"),
    path("<int:pk>/", views.study_detail, name="study-detail"),
    path("<int:pk>/status/", views.study_status, name="study-status"),
    path("<int:pk>/cancel/", views.study_cancel, name="study-cancel"),
    path("<int:pk>/delete/", views.study_delete, name="study-delete"),
]
