from django.apps import AppConfig


class OverviewConfig(AppConfig):
    name = "apps.overview"
    label = "overview"
