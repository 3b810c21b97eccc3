"""An owner's webhooks."""

from django.urls import path

from apps.webhooks import views

app_name = "webhooks"
urlpatterns = [
    path("", views.webhook_list, name="webhook-list"),
    path("add", views.webhook_add, name="webhook-add"),
    path("<int:pk>/remove", views.webhook_remove, name="webhook-remove"),
    path("<int:pk>/secret", views.webhook_secret, name="webhook-secret"),
    path("<int:pk>/test", views.webhook_test, name="webhook-test"),
    path("deliveries/", views.delivery_list, name="delivery-list"),
    path("deliveries/<int:pk>/again", views.delivery_again, name="delivery-again"),
]
