from django.urls import path

from apps.rewards import views

app_name = "rewards"
urlpatterns = [
    path("", views.endpoint_list, name="endpoint-list"),
    path("node/", views.project_node, name="project-node"),
    path("compose/", views.endpoint_compose, name="endpoint-compose"),
    path("deploy/", views.endpoint_deploy, name="endpoint-deploy"),
    path("trajectory-reasons/<int:pk>/", views.trajectory_reasons, name="trajectory-reasons"),
    path("trajectory-rewards/<int:pk>/", views.trajectory_rewards, name="trajectory-rewards"),
    path("servers/", views.server_list, name="server-list"),
    path("servers/state/", views.server_state, name="server-state"),
    path("servers/add/", views.replica_add, name="replica-add"),
    path("servers/<slug:name>/delete/", views.server_delete, name="server-delete"),
    path("servers/replicas/<int:pk>/drain/", views.replica_drain, name="replica-drain"),
    path("servers/replicas/<int:pk>/remove/", views.replica_remove, name="replica-remove"),
    path("<slug:name>/", views.endpoint_detail, name="endpoint-detail"),
    path("<slug:name>/state/", views.endpoint_state, name="endpoint-state"),
    path("<slug:name>/try/", views.endpoint_try, name="endpoint-try"),
    path("<slug:name>/rollback/", views.endpoint_rollback, name="endpoint-rollback"),
    path("<slug:name>/usage/", views.endpoint_usage, name="endpoint-usage"),
    path("<slug:name>/samples/", views.endpoint_samples, name="endpoint-samples"),
    path("<slug:name>/samples/<int:pk>/", views.sample_detail, name="sample-detail"),
    path("<slug:name>/guard/", views.guard_log, name="guard-log"),
    path("<slug:name>/guard/review/", views.guard_review, name="guard-review"),
    path("<slug:name>/guard/decisions/<int:pk>/", views.guard_decision_detail, name="guard-decision"),
    path("<slug:name>/release/", views.release_state, name="release-state"),
    path("<slug:name>/release/start/", views.release_start, name="release-start"),
    path("<slug:name>/release/canary/", views.release_canary, name="release-canary"),
    path("<slug:name>/release/promote/", views.release_promote, name="release-promote"),
    path("<slug:name>/release/roll-back/", views.release_roll_back, name="release-roll-back"),
    path("<slug:name>/standby/", views.standby_set, name="standby-set"),
    path("<slug:name>/standby/promote/", views.standby_promote, name="standby-promote"),
    path("<slug:name>/switch/", views.endpoint_switch, name="endpoint-switch"),
]
