from django.urls import path

from apps.monitoring import views

app_name = "monitoring"
urlpatterns = [
    path("", views.alert_list, name="alert-list"),
    path("node/", views.project_node, name="project-node"),
    path("times/", views.turn_times, name="turn-times"),
    path("<int:pk>/", views.alert_detail, name="alert-detail"),
    path("<int:pk>/ask/", views.alert_ask, name="alert-ask"),
    path("of/<slug:name>/mail/", views.monitor_mail, name="monitor-mail"),
    path("of/<slug:name>/turn/", views.turn_state, name="turn-state"),
    path("of/<slug:name>/turn/begin/", views.turn_begin, name="turn-begin"),
    path("of/<slug:name>/turn/go-on/", views.turn_go_on, name="turn-go-on"),
    path("of/<slug:name>/", views.monitor_detail, name="monitor-detail"),
    path("of/<slug:name>/summary/", views.monitor_summary, name="monitor-summary"),
]
