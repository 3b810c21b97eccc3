"""Pages of drift between agent versions, for researchers."""

from django.urls import path

from apps.agent_drift import views

app_name = "agent_drift"
urlpatterns = [
    path("", views.version_list, name="version-list"),
    path("reference/", views.reference_choose, name="reference-choose"),
]
