"""Pages of semantic search and of clusters, for researchers."""

from django.urls import path

from apps.semantic_search import views

app_name = "semantic_search"
urlpatterns = [
    path("semantic-search/", views.semantic_search, name="semantic-search"),
    path("semantic-search/trajectories/<int:pk>/", views.trajectory_neighbours, name="trajectory-neighbours"),
    path("clusters/", views.clustering_list, name="clustering-list"),
    path("clusters/<int:pk>/", views.clustering_detail, name="clustering-detail"),
    path("clusters/<int:pk>/status/", views.clustering_status, name="clustering-status"),
    path("clusters/<int:pk>/cancel/", views.clustering_cancel, name="clustering-cancel"),
    path("clusters/<int:pk>/delete/", views.clustering_delete, name="clustering-delete"),
    path("clusters/<int:pk>/<int:cluster>/", views.cluster_members, name="cluster-members"),
]
