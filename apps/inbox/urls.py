from django.urls import path

from apps.inbox import views

app_name = "inbox"
urlpatterns = [
    path("", views.notification_list, name="notification-list"),
    path("read", views.notification_read, name="notification-read"),
    path("preferences/", views.preference_edit, name="preference-edit"),
    path("<int:pk>/", views.notification_open, name="notification-open"),
]
