from django.urls import path

from apps.datasets import trajectory_views, views

app_name = "datasets"
urlpatterns = [
    path("", views.dataset_version_list, name="dataset-version-list"),
    path("node/", views.project_node, name="project-node"),
    path("new/", views.dataset_version_create, name="dataset-version-create"),
    path("erase/", views.erase, name="erase"),
    path("trajectories/export/", trajectory_views.trajectory_export, name="trajectory-export"),
    path("trajectories/delete/", trajectory_views.trajectories_delete, name="trajectories-delete"),
    path("deletions/<int:pk>/", trajectory_views.deletion_detail, name="deletion-detail"),
    path("deletions/<int:pk>/cancel/", trajectory_views.deletion_cancel, name="deletion-cancel"),
    path("exports/", views.export_list, name="export-list"),
    path("exports/<int:pk>/cancel/", views.export_cancel, name="export-cancel"),
    path("exports/<int:pk>/file/", views.export_file, name="export-file"),
    path("<int:pk>/", views.dataset_version_detail, name="dataset-version-detail"),
    path("<int:pk>/cancel/", views.dataset_version_cancel, name="dataset-version-cancel"),
    path("<int:pk>/export/", views.dataset_version_export_start, name="dataset-version-export-start"),
    path("<int:pk>/export/<slug:format>/", views.dataset_version_export, name="dataset-version-export"),
]
