"""Pages of policy documents, for researchers."""

from django.urls import path

from apps.policy_documents import views

app_name = "policy_documents"
urlpatterns = [
    path("", views.document_list, name="document-list"),
    path("new/", views.document_create, name="document-create"),
    path("<int:pk>/", views.document_detail, name="document-detail"),
    path("<int:pk>/delete/", views.document_delete, name="document-delete"),
    path("<int:pk>/rules/", views.rules_decide, name="rules-decide"),
    path("rules/<int:pk>/", views.rule_detail, name="rule-detail"),
    path("splits/<int:pk>/status/", views.split_status, name="split-status"),
    path("splits/<int:pk>/cancel/", views.split_cancel, name="split-cancel"),
]
