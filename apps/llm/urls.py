"""Pages of LLM connections, for the owners of a project."""

from django.urls import path

from apps.llm import views

app_name = "llm"
urlpatterns = [
    path("llm-connections/", views.connection_list, name="connection-list"),
    path("llm-connections/<int:pk>/", views.connection_edit, name="connection-edit"),
    path("llm-connections/<int:pk>/delete/", views.connection_delete, name="connection-delete"),
    path("llm-connections/<int:pk>/test/", views.connection_test, name="connection-test"),
]
