from django.urls import path

from apps.active_learning import views

app_name = "active_learning"
urlpatterns = [
    path("<int:pk>/", views.plan_detail, name="plan-detail"),
    path("<int:pk>/status/", views.plan_status, name="plan-status"),
    path("<int:pk>/now/", views.plan_now, name="plan-now"),
    path("<int:pk>/summary/", views.plan_summary, name="plan-summary"),
    path("reasons/<int:pk>/", views.item_reason, name="item-reason"),
]
