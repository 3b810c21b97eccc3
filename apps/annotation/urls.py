from django.urls import path

from apps.annotation import views

app_name = "annotation"
urlpatterns = [
    path("", views.campaign_list, name="campaign-list"),
    path("node/", views.project_node, name="project-node"),
    path("my-work/", views.campaign_list_own, name="campaign-list-own"),
    path("new/", views.campaign_create, name="campaign-create"),
    path("preview/", views.item_preview, name="item-preview"),
    path("<int:pk>/", views.campaign_detail, name="campaign-detail"),
    path("<int:pk>/edit/", views.campaign_update, name="campaign-update"),
    path("<int:pk>/items/", views.campaign_items, name="campaign-items"),
    path("<int:pk>/preview/", views.campaign_preview, name="campaign-preview"),
    path("<int:pk>/timesheet.csv", views.campaign_timesheet, name="campaign-timesheet"),
    path("<int:pk>/quality/", views.campaign_quality, name="campaign-quality"),
    path("<int:pk>/reliability/", views.campaign_reliability, name="campaign-reliability"),
    path("<int:pk>/judged/", views.item_list, name="item-list"),
    path("<int:pk>/adjudicate/", views.adjudication_next, name="adjudication-next"),
    path("<int:pk>/pilot/", views.campaign_pilot, name="campaign-pilot"),
    path("<int:pk>/assign/", views.campaign_assign, name="campaign-assign"),
    path("<int:pk>/resume/", views.campaign_resume, name="campaign-resume"),
    path("examples/<int:pk>/", views.example_detail, name="example-detail"),
    path("judged/<int:pk>/", views.item_detail, name="item-detail"),
    path("judged/<int:pk>/adjudicate/", views.item_adjudicate, name="item-adjudicate"),
    path("judged/<int:pk>/purpose/", views.item_purpose, name="item-purpose"),
    path("judged/<int:pk>/assign/", views.item_assign, name="item-assign"),
    path("assignments/<int:pk>/release/", views.assignment_release, name="assignment-release"),
    path("<int:pk>/state/", views.campaign_state, name="campaign-state"),
    path("<int:pk>/work/", views.campaign_work, name="campaign-work"),
    path("<int:pk>/history/", views.campaign_history, name="campaign-history"),
    path("items/<int:pk>/", views.assignment_detail, name="assignment-detail"),
    path("items/<int:pk>/answer/", views.assignment_answer, name="assignment-answer"),
    path("items/<int:pk>/rows/", views.assignment_rows, name="assignment-rows"),
    path("items/<int:pk>/submit/", views.assignment_submit, name="assignment-submit"),
    path("items/<int:pk>/draft/", views.assignment_draft, name="assignment-draft"),
    path("items/<int:pk>/<str:how>/", views.assignment_leave, name="assignment-leave"),
]
