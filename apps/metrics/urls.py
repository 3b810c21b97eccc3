from django.urls import path

from apps.metrics import views

app_name = "metrics"
urlpatterns = [
    path("", views.induction_list, name="induction-list"),
    path("page-comments/", views.page_comments_copy, name="page-comments-copy"),
    path("scoreboard/", views.scoreboard_page, name="scoreboard"),
    path("inductions/<int:pk>/", views.induction_detail, name="induction-detail"),
    path("inductions/<int:pk>/status/", views.induction_status, name="induction-status"),
    path("inductions/<int:pk>/cancel/", views.induction_cancel, name="induction-cancel"),
    path("inductions/<int:pk>/judge/", views.induction_judge, name="induction-judge"),
    path("inductions/<int:pk>/rubric/", views.induction_rubric, name="induction-rubric"),
    path("<int:pk>/", views.metric_detail, name="metric-detail"),
    path("<int:pk>/edit/", views.metric_edit, name="metric-edit"),
    path("<int:pk>/decide/", views.metric_decide, name="metric-decide"),
    path("<int:pk>/merge/", views.metric_merge, name="metric-merge"),
    path("<int:pk>/split/", views.metric_split, name="metric-split"),
]
