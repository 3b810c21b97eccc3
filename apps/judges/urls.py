"""An owner's language models, and a researcher's judges."""

from django.urls import path

from apps.judges.views import judges, language_models

app_name = "judges"
urlpatterns = [
    path("language-models/", language_models.language_model_list, name="language-model-list"),
    path("language-models/<int:pk>/", language_models.language_model_edit, name="language-model-edit"),
    path(
        "language-models/<int:pk>/remove/",
        language_models.language_model_remove,
        name="language-model-remove",
    ),
    path("language-models/<int:pk>/try/", language_models.language_model_try, name="language-model-try"),
    path("judges/", judges.judge_list, name="judge-list"),
    path("judges/<int:pk>/", judges.judge_detail, name="judge-detail"),
    path("judges/<int:pk>/remove/", judges.judge_remove, name="judge-remove"),
    path("judges/<int:pk>/try/", judges.judge_try, name="judge-try"),
    path("judges/<int:pk>/run/", judges.judge_run, name="judge-run"),
    path("judges/judgings/<int:pk>/", judges.judging_detail, name="judging-detail"),
    path("judges/judgings/<int:pk>/status/", judges.judging_status, name="judging-status"),
    path("judges/judgings/<int:pk>/cancel/", judges.judging_cancel, name="judging-cancel"),
    path("judges/judgings/<int:pk>/retry/", judges.judging_retry, name="judging-retry"),
    path("judges/judgings/<int:pk>/hand-in/", judges.judging_hand_in, name="judging-hand-in"),
]
