from django.urls import path

from apps.lifecycle import views

app_name = "lifecycle"
urlpatterns = [
    path("", views.project_data, name="project-data"),
    path("retention", views.retention_save, name="retention-save"),
    path("archive", views.project_archive, name="project-archive"),
    path("export", views.project_export, name="project-export"),
    path("exports/<int:pk>/file", views.project_export_file, name="project-export-file"),
    path("delete", views.project_delete, name="project-delete"),
]
