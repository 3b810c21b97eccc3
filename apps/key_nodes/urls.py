"""Pages of key nodes, for researchers."""

from django.urls import path

from apps.key_nodes import views

app_name = "key_nodes"
urlpatterns = [
    path("", views.key_nodes_list, name="key-nodes-list"),
    path("trajectories/<int:pk>/steps/<int:index>/", views.node_create, name="node-create"),
    path("trajectories/<int:pk>/", views.trajectory_nodes, name="trajectory-nodes"),
    path("<int:pk>/", views.key_nodes_detail, name="key-nodes-detail"),
    path("<int:pk>/add/", views.node_add, name="node-add"),
    path("<int:pk>/nodes/<int:index>/", views.node_edit, name="node-edit"),
    path("<int:pk>/nodes/<int:index>/move/", views.node_move, name="node-move"),
    path("<int:pk>/nodes/<int:index>/delete/", views.node_delete, name="node-delete"),
]
