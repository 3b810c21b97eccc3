"""Forms of semantic search and of clusters."""

from django import forms

from apps.semantic_search.clustering import MAX_CLUSTERS, MIN_CLUSTERS
from apps.trajectories.filters import LONGEST_QUERY

_CONTROL = {"class": "form-control"}


class ClusteringForm(forms.Form):
    filter = forms.CharField(
        required=False,
        max_length=LONGEST_QUERY,
        label="Filter",
        help_text="As in the address of the trajectory list, such as agent=desk&success=no; empty for all.",
        widget=forms.TextInput(attrs=_CONTROL),
    )
    cluster_count = forms.IntegerField(
        required=False,
        min_value=MIN_CLUSTERS,
        max_value=MAX_CLUSTERS,
        label="Number of clusters",
        help_text="Chosen by the silhouette where it is empty.",
        widget=forms.NumberInput(attrs=_CONTROL),
    )
