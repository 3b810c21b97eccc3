from django.urls import path

from apps.rewards import views

app_name = "rewards"
urlpatterns = [
    path("", views.endpoint_list, name="endpoint-list"),
    path("node/", views.project_node, name="project-node"),
    path("compose/", views.endpoint_compose, name="endpoint-compose"),
    path("deploy/", views.endpoint_deploy, name="endpoint-deploy"),
    path("<slug:name>/", views.endpoint_detail, name="endpoint-detail"),
    path("<slug:name>/state/", views.endpoint_state, name="endpoint-state"),
    path("<slug:name>/try/", views.endpoint_try, name="endpoint-try"),
    path("<slug:name>/rollback/", views.endpoint_rollback, name="endpoint-rollback"),
    path("<slug:name>/usage/", views.endpoint_usage, name="endpoint-usage"),
    path("<slug:name>/samples/", views.endpoint_samples, name="endpoint-samples"),
    path("<slug:name>/samples/<int:pk>/", views.sample_detail, name="sample-detail"),
    path("<slug:name>/trial/", views.trial_state, name="trial-state"),
    path("<slug:name>/trial/start/", views.trial_start, name="trial-start"),
    path("<slug:name>/trial/canary/", views.trial_canary, name="trial-canary"),
    path("<slug:name>/trial/promote/", views.trial_promote, name="trial-promote"),
    path("<slug:name>/trial/withdraw/", views.trial_withdraw, name="trial-withdraw"),
    path("<slug:name>/switch/", views.endpoint_switch, name="endpoint-switch"),
]
