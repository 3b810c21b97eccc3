"""Pages of subgoals, for researchers."""

from django.urls import path

from apps.subgoals import views

app_name = "subgoals"
urlpatterns = [
    path("", views.subgoals_list, name="subgoals-list"),
    path("propose/", views.proposal_create, name="proposal-create"),
    path("proposals/<int:pk>/", views.proposal_detail, name="proposal-detail"),
    path("proposals/<int:pk>/status/", views.proposal_status, name="proposal-status"),
    path("proposals/<int:pk>/cancel/", views.proposal_cancel, name="proposal-cancel"),
    path("<int:pk>/", views.subgoals_detail, name="subgoals-detail"),
    path("<int:pk>/decide/", views.subgoals_decide, name="subgoals-decide"),
]
