from django.urls import path

from apps.monitoring import views

app_name = "monitoring"
urlpatterns = [
    path("", views.alert_list, name="alert-list"),
    path("node/", views.project_node, name="project-node"),
    path("<int:pk>/", views.alert_detail, name="alert-detail"),
    path("of/<slug:name>/mail/", views.monitor_mail, name="monitor-mail"),
    path("of/<slug:name>/", views.monitor_detail, name="monitor-detail"),
    path("of/<slug:name>/summary/", views.monitor_summary, name="monitor-summary"),
]
