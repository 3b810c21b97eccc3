"""Pages of questions about trajectories, for researchers."""

from django.urls import path

from apps.questions import views

app_name = "questions"
urlpatterns = [
    path("questions/", views.question_list, name="question-list"),
    path("questions/<int:pk>/", views.question_detail, name="question-detail"),
    path("questions/<int:pk>/status/", views.question_status, name="question-status"),
    path("questions/<int:pk>/answers/", views.question_answers, name="question-answers"),
    path("questions/<int:pk>/cancel/", views.question_cancel, name="question-cancel"),
    path("questions/<int:pk>/retry/", views.question_retry, name="question-retry"),
    path("questions/<int:pk>/delete/", views.question_delete, name="question-delete"),
    path("questions/<int:pk>/tag/", views.question_tag, name="question-tag"),
    path("questions/<int:pk>/rubric/", views.question_rubric, name="question-rubric"),
]
