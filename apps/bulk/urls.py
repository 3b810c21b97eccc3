from django.urls import path

from apps.bulk import views

app_name = "bulk"
urlpatterns = [
    path("", views.bulk_job_list, name="bulk-job-list"),
    path("new/", views.bulk_job_create, name="bulk-job-create"),
    path("<int:pk>/", views.bulk_job_detail, name="bulk-job-detail"),
    path("<int:pk>/status/", views.bulk_job_status, name="bulk-job-status"),
    path("<int:pk>/change/", views.bulk_job_change, name="bulk-job-change"),
    path("<int:pk>/results/", views.bulk_job_results, name="bulk-job-results"),
]
