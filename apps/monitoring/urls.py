from django.urls import path

from apps.monitoring import views

app_name = "monitoring"
urlpatterns = [
    path("", views.alert_list, name="alert-list"),
    path("node/", views.project_node, name="project-node"),
    path("<int:pk>/", views.alert_detail, name="alert-detail"),
    path("<int:pk>/ask/", views.alert_ask, name="alert-ask"),
    path("of/<slug:name>/ask/", views.monitor_ask, name="monitor-ask"),
    path("of/<slug:name>/", views.monitor_detail, name="monitor-detail"),
    path("of/<slug:name>/summary/", views.monitor_summary, name="monitor-summary"),
]
