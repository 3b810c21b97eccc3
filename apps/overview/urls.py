"""The home of a project. Its own page is in `apps.config.urls`, under the name that all apps know it by."""

from django.urls import path

from apps.overview import search_views, views

app_name = "overview"
urlpatterns = [
    path("p/<slug:slug>/checklist/", views.checklist_show, name="checklist-show"),
    path("p/<slug:slug>/running-jobs/", views.running_job_list, name="running-jobs"),
    path("p/<slug:slug>/agreement/", views.agreement_list, name="agreement-notes"),
    path("p/<slug:slug>/search/", search_views.search_page, name="search"),
    path("p/<slug:slug>/palette/", search_views.project_palette, name="palette"),
    path("search/", search_views.account_search, name="account-search"),
    path("palette/", search_views.account_palette, name="account-palette"),
    path("p/<slug:slug>/activity/", views.activity_list, name="activity"),
]
