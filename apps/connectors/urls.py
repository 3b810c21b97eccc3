"""Pages of connectors. Owners create and change them; researchers see and run them."""

from django.urls import path

from apps.connectors import views

app_name = "connectors"
urlpatterns = [
    path("", views.connector_list, name="connector-list"),
    path("new/", views.connector_kinds, name="connector-kinds"),
    path("new/<slug:kind>/", views.connector_new, name="connector-new"),
    path("<int:pk>/", views.connector_detail, name="connector-detail"),
    path("<int:pk>/edit/", views.connector_edit, name="connector-edit"),
    path("<int:pk>/run/", views.connector_run, name="connector-run"),
    path("<int:pk>/push/", views.connector_push, name="connector-push"),
    path("<int:pk>/pause/", views.connector_pause, name="connector-pause"),
    path("<int:pk>/delete/", views.connector_delete, name="connector-delete"),
    path("<int:pk>/status/", views.connector_status, name="connector-status"),
    path("<int:pk>/runs/<int:run>/", views.run_detail, name="run-detail"),
    path("<int:pk>/runs/<int:run>/cancel/", views.run_cancel, name="run-cancel"),
]
