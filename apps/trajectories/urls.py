from django.urls import path

from apps.trajectories import views

app_name = "trajectories"
urlpatterns = [
    path("", views.trajectory_list, name="trajectory-list"),
    path("node/", views.project_node, name="project-node"),
    path("upload/", views.trajectory_upload, name="trajectory-upload"),
    path("upload/mapping/", views.upload_map, name="upload-map"),
    path("imports/<int:pk>/", views.import_detail, name="import-detail"),
    path("imports/", views.import_start, name="import-start"),
    path("imports/<int:pk>/cancel/", views.import_cancel, name="import-cancel"),
    path("attachments/<str:sha256>/", views.attachment_detail, name="attachment-detail"),
    path("attachments/<str:sha256>/small/", views.attachment_small, name="attachment-small"),
    path("filters/", views.filter_save, name="filter-save"),
    path("filters/<int:pk>/delete/", views.filter_delete, name="filter-delete"),
    path("tags/", views.trajectories_tag, name="trajectories-tag"),
    path("tasks/<int:pk>/", views.task_tree, name="task-tree"),
    path("agents/", views.agents_compare, name="agents-compare"),
    path("<int:pk>/", views.trajectory_detail, name="trajectory-detail"),
    path("<int:pk>/find/", views.trajectory_find, name="trajectory-find"),
    path("<int:pk>/compare/<int:other>/", views.trajectories_diff, name="trajectories-diff"),
    path("<int:pk>/steps/", views.trajectory_steps, name="trajectory-steps"),
    path("<int:pk>/steps/<int:index>/", views.step_detail, name="step-detail"),
]
