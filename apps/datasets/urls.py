from django.urls import path

from apps.datasets import views

app_name = "datasets"
urlpatterns = [
    path("", views.snapshot_list, name="snapshot-list"),
    path("node/", views.project_node, name="project-node"),
    path("new/", views.snapshot_create, name="snapshot-create"),
    path("erase/", views.erase, name="erase"),
    path("exports/", views.export_list, name="export-list"),
    path("exports/<int:pk>/cancel/", views.export_cancel, name="export-cancel"),
    path("exports/<int:pk>/file/", views.export_file, name="export-file"),
    path("<int:pk>/", views.snapshot_detail, name="snapshot-detail"),
    path("<int:pk>/cancel/", views.snapshot_cancel, name="snapshot-cancel"),
    path("<int:pk>/export/", views.snapshot_export_start, name="snapshot-export-start"),
    path("<int:pk>/export/<slug:format>/", views.snapshot_export, name="snapshot-export"),
]
