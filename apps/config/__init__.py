"""Importing the settings makes our Celery app the current one, so that every process sends and finds tasks."""

from apps.config.celery import app as celery_app

__all__ = ["celery_app"]
