"""Pages of hindsight tasks, for researchers."""

from django.urls import path

from apps.hindsight import views

app_name = "hindsight"
urlpatterns = [
    path("", views.hindsight_list, name="task-list"),
    path("propose/", views.hindsight_propose, name="proposal-create"),
    path("proposed/<int:pk>/", views.hindsight_proposal, name="proposal-detail"),
    path("proposed/<int:pk>/status/", views.hindsight_status, name="proposal-status"),
    path("proposed/<int:pk>/cancel/", views.hindsight_cancel, name="proposal-cancel"),
    path("<int:pk>/", views.hindsight_detail, name="task-detail"),
    path("<int:pk>/decide/", views.hindsight_decide, name="task-decide"),
]
