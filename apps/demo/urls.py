"""The sample project."""

from django.urls import path

from apps.demo import views

app_name = "demo"
urlpatterns = [path("projects/sample", views.sample_open, name="sample-open")]
