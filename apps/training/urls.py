from django.urls import path

from apps.training import views

app_name = "training"
urlpatterns = [
    path("node/", views.project_node, name="project-node"),
    path("runs/", views.run_list, name="run-list"),
    path("runs/new/", views.run_create, name="run-create"),
    path("runs/estimate/", views.run_estimate, name="run-estimate"),
    path("runs/compare/", views.run_compare, name="run-compare"),
    path("runs/<int:pk>/", views.run_detail, name="run-detail"),
    path("runs/<int:pk>/status/", views.run_status, name="run-status"),
    path("runs/<int:pk>/rename/", views.run_rename, name="run-rename"),
    path("runs/<int:pk>/cancel/", views.run_cancel, name="run-cancel"),
    path("runs/<int:pk>/resume/", views.run_resume, name="run-resume"),
    path("models/", views.model_list, name="model-list"),
    path("model-imports/new/", views.model_import_create, name="model-import-create"),
    path("model-imports/<int:pk>/", views.model_import_detail, name="model-import-detail"),
    path("model-imports/<int:pk>/cancel/", views.model_import_cancel, name="model-import-cancel"),
    path("models/<int:pk>/", views.model_detail, name="model-detail"),
    path("evaluations/<int:pk>/", views.evaluation_detail, name="evaluation-detail"),
    path("models/<int:pk>/card/", views.model_card, name="model-card"),
    path("models/<int:pk>/tags/", views.model_tags, name="model-tags"),
    path("models/<int:pk>/exports/", views.model_export_list, name="model-export-list"),
    path("models/<int:pk>/export/", views.model_export_start, name="model-export-start"),
    path("model-exports/<int:pk>/cancel/", views.model_export_cancel, name="model-export-cancel"),
    path("model-exports/<int:pk>/file/", views.model_export_file, name="model-export-file"),
    path("models/<int:pk>/delete/", views.model_delete, name="model-delete"),
]
