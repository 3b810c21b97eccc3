"""Forms of semantic search and of clusters."""

from typing import Any

from django import forms

from apps.accounts.models import Project
from apps.semantic_search.clustering import MAX_CLUSTERS, MIN_CLUSTERS
from apps.trajectories.filter_field import FilterField, offer_filter_builder

_CONTROL = {"class": "form-control"}


class ClusteringForm(forms.Form):
    filter = FilterField()
    cluster_count = forms.IntegerField(
        required=False,
        min_value=MIN_CLUSTERS,
        max_value=MAX_CLUSTERS,
        label="Number of clusters",
        help_text="Chosen by the silhouette where it is empty.",
        widget=forms.NumberInput(attrs=_CONTROL),
    )

    def __init__(self, *args: Any, project: Project, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        offer_filter_builder(self, project)
