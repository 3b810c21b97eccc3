from django.urls import path

from apps.trajectories import views

app_name = "trajectories"
urlpatterns = [
    path("", views.trajectory_list, name="trajectory-list"),
    path("by-task/", views.trajectory_list_by_task, name="trajectory-list-by-task"),
    path("node/", views.project_node, name="project-node"),
    path("upload/", views.trajectory_upload, name="trajectory-upload"),
    path("upload/mapping/", views.upload_map, name="upload-map"),
    path("imports/<int:pk>/", views.import_detail, name="import-detail"),
    path("masking/", views.masking_edit, name="masking-edit"),
    path("imports/", views.import_start, name="import-start"),
    path("imports/<int:pk>/cancel/", views.import_cancel, name="import-cancel"),
    path("attachments/<str:sha256>/", views.attachment_detail, name="attachment-detail"),
    path("attachments/<str:sha256>/small/", views.attachment_small, name="attachment-small"),
    path("actions/<str:name>/", views.trajectory_action, name="trajectory-action"),
    path("filter/", views.filter_builder, name="filter-builder"),
    path("views/", views.view_create, name="view-create"),
    path("views/<int:pk>/", views.view_change, name="view-change"),
    path("views/<int:pk>/delete/", views.view_delete, name="view-delete"),
    path("tags/", views.trajectories_tag, name="trajectories-tag"),
    path("tasks/<int:pk>/", views.task_tree, name="task-tree"),
    path("agents/", views.agents_compare, name="agents-compare"),
    path("<int:pk>/", views.trajectory_detail, name="trajectory-detail"),
    path("<int:pk>/overview/", views.trajectory_overview, name="trajectory-overview"),
    path("<int:pk>/json/", views.trajectory_json, name="trajectory-json"),
    path("<int:pk>/tags/", views.trajectory_tag, name="trajectory-tag"),
    path("<int:pk>/comments/", views.comment_create, name="comment-create"),
    path("<int:pk>/comments/<int:comment>/edit/", views.comment_edit, name="comment-edit"),
    path("<int:pk>/comments/<int:comment>/delete/", views.comment_delete, name="comment-delete"),
    path("<int:pk>/find/", views.trajectory_find, name="trajectory-find"),
    path("<int:pk>/compare/<int:other>/", views.trajectories_diff, name="trajectories-diff"),
    path("<int:pk>/steps/", views.trajectory_steps, name="trajectory-steps"),
    path("<int:pk>/steps/<int:index>/", views.step_detail, name="step-detail"),
]
