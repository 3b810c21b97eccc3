from django.urls import path

from apps.retraining import views

app_name = "retraining"
urlpatterns = [
    path("times/", views.cycle_times, name="cycle-times"),
    path("alerts/<int:pk>/", views.alert_follow_ups, name="alert-follow-ups"),
    path("alerts/<int:pk>/request/", views.alert_follow_up_create, name="alert-follow-up-create"),
    path("of/<slug:name>/", views.cycle_detail, name="cycle-detail"),
    path("of/<slug:name>/start/", views.cycle_start, name="cycle-start"),
    path("of/<slug:name>/continue/", views.cycle_continue, name="cycle-continue"),
]
