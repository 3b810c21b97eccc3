from django.urls import path

from apps.annotation import views

app_name = "annotation"
urlpatterns = [
    path("", views.campaign_list, name="campaign-list"),
    path("node/", views.project_node, name="project-node"),
    path("my-work/", views.my_work, name="my-work"),
    path("new/", views.campaign_create, name="campaign-create"),
    path("pairs/", views.pair_preview, name="pair-preview"),
    path("<int:pk>/", views.campaign_detail, name="campaign-detail"),
    path("<int:pk>/edit/", views.campaign_update, name="campaign-update"),
    path("<int:pk>/pairs/", views.campaign_pairs, name="campaign-pairs"),
    path("<int:pk>/state/", views.campaign_state, name="campaign-state"),
    path("<int:pk>/work/", views.work, name="work"),
    path("<int:pk>/history/", views.history, name="history"),
    path("items/<int:pk>/", views.assignment_detail, name="assignment-detail"),
    path("items/<int:pk>/rows/", views.rows, name="assignment-rows"),
    path("items/<int:pk>/submit/", views.submit, name="assignment-submit"),
    path("items/<int:pk>/draft/", views.draft, name="assignment-draft"),
    path("items/<int:pk>/<str:how>/", views.leave, name="assignment-leave"),
]
