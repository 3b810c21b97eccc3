from django.urls import path

from apps.lineage import views

app_name = "lineage"
urlpatterns = [
    path("", views.lineage_list, name="lineage-list"),
    path("samples/<int:pk>/", views.sample_lineage, name="sample-lineage"),
    path("samples/<int:pk>/labels/", views.sample_labels, name="sample-labels"),
    path("datasets/<int:pk>/", views.dataset_labels, name="dataset-labels"),
    path("judged/<int:pk>/", views.item_lineage, name="item-lineage"),
    path("annotators/<int:pk>/", views.annotator_lineage, name="annotator-lineage"),
    path("models/<int:pk>/", views.model_uses, name="model-uses"),
]
