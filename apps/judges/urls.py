"""An owner's language models."""

from django.urls import path

from apps.judges import views

app_name = "judges"
urlpatterns = [
    path("", views.language_model_list, name="language-model-list"),
    path("<int:pk>/", views.language_model_edit, name="language-model-edit"),
    path("<int:pk>/remove/", views.language_model_remove, name="language-model-remove"),
    path("<int:pk>/try/", views.language_model_try, name="language-model-try"),
]
