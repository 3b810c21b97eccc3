"""Search by meaning and clusters, by the real encoder, the real child processes and pgvector."""

from typing import Any

import numpy as np
import pytest
from django.test import Client

from apps.accounts.models import Project, User
from apps.bulk.services import create_bulk_job
from apps.core.errors import DomainError, NotFound
from apps.semantic_search import vectors
from apps.semantic_search.cluster_summaries import cluster_map, summarise_clusterings, summarise_clusters
from apps.semantic_search.clustering import delete_clustering, start_clustering
from apps.semantic_search.models import ClusterMember, TrajectoryClustering, TrajectoryPassage
from apps.semantic_search.queries import search_by_meaning
from apps.semantic_search.selectors import index_counts, nearest_passages, similar_trajectories
from apps.semantic_search.tasks import advance_clusterings
from apps.trajectories.filter_queries import filter_trajectories
from apps.trajectories.filters import FilterError
from apps.trajectories.models import Trajectory
from tests.rewards.conftest import running_service, wait_until

pytestmark = [pytest.mark.ml, pytest.mark.django_db(transaction=True)]


@pytest.fixture
def flights(indexed: Project) -> set[int]:
    return set(filter_trajectories(indexed, "text=plane").values_list("pk", flat=True))


def test_words_need_not_be_the_same(indexed: Project, flights: set[int], settings: Any) -> None:
    with running_service() as service:
        settings.REWARDS_ADDRESS = service.url
        wait_until(lambda: service.state.access.registry is not None)
        found = search_by_meaning(indexed, "air travel is called off and money given back")
        assert {passage.trajectory.pk for passage in found[:4]} == flights
        assert found[0].similarity > found[4].similarity and "cancelled" in found[0].excerpt
        chosen = search_by_meaning(indexed, "air travel", source=f"id={min(flights)}")
        assert [passage.trajectory.pk for passage in chosen] == [min(flights)]
        with pytest.raises(DomainError, match="characters"):
            search_by_meaning(indexed, " ")


def test_the_database_finds_what_numpy_finds(indexed: Project) -> None:
    rows = list(TrajectoryPassage.objects.values_list("trajectory_id", "embedding"))
    matrix = np.asarray([vector for _, vector in rows])
    assert np.linalg.norm(matrix, axis=1) == pytest.approx(1, abs=2e-3)
    for key, vector in rows:
        found = nearest_passages(indexed, vector)
        cosine = matrix @ np.asarray(vector)
        expected = [rows[place][0] for place in np.argsort(-cosine)]
        assert found[0].trajectory.pk == key and found[0].similarity == pytest.approx(1, abs=2e-3)
        assert [passage.trajectory.pk for passage in found][:3] == expected[:3]


def test_similar_trajectories_leave_out_their_own(indexed: Project, flights: set[int]) -> None:
    first = Trajectory.objects.get(pk=min(flights))
    found = similar_trajectories(first)
    assert first.pk not in {passage.trajectory.pk for passage in found}
    assert {passage.trajectory.pk for passage in found[:3]} == flights - {first.pk}
    TrajectoryPassage.objects.filter(trajectory=first).delete()
    with pytest.raises(NotFound, match="not in the index"):
        similar_trajectories(first)
    assert (index_counts(indexed).missing, index_counts(indexed).indexed) == (1, 7)


def test_other_projects_are_never_found(indexed: Project) -> None:
    other = Project.objects.create(slug="other", name="Other")
    vector = TrajectoryPassage.objects.values_list("embedding", flat=True)[0]
    assert nearest_passages(other, vector) == []


def test_only_what_is_missing_is_indexed(indexed: Project) -> None:
    with pytest.raises(DomainError, match="in the index already"):
        create_bulk_job(project=indexed, work="index")
    TrajectoryPassage.objects.filter(trajectory=Trajectory.objects.first()).delete()
    assert create_bulk_job(project=indexed, work="index").item_count == 1


def test_without_pgvector_a_sentence_names_what_to_do(
    project: Project, monkeypatch: pytest.MonkeyPatch, client: Client, researcher: User
) -> None:
    assert vectors.has_vectors()
    monkeypatch.setattr(vectors, "INDEX", "no_such_index")
    with pytest.raises(DomainError, match="CREATE EXTENSION vector"):
        nearest_passages(project, [0.0] * vectors.DIMENSIONS)
    with pytest.raises(DomainError, match="pgvector"):
        create_bulk_job(project=project, work="index")
    client.force_login(researcher)
    assert "CREATE EXTENSION vector" in client.get("/p/desk/semantic-search/").content.decode()


def clustered(project: Project, **given: Any) -> TrajectoryClustering:
    clustering = start_clustering(project=project, **given)
    advance_clusterings()
    clustering.refresh_from_db()
    return clustering


def test_clusters_are_named_and_can_be_filtered_by(indexed: Project, flights: set[int]) -> None:
    clustering = clustered(indexed, cluster_count=2)
    assert clustering.state == "succeeded", clustering.error
    summaries = summarise_clusters(clustering)
    assert [found.count for found in summaries] == [4, 4]
    names = " ".join(found.name for found in summaries)
    assert "pizza" in names and ("flight" in names or "plane" in names)
    by_filter = [
        set(filter_trajectories(indexed, found.query).values_list("pk", flat=True)) for found in summaries
    ]
    assert flights in by_filter and sum(map(len, by_filter)) == 8
    assert [series["name"][0] for series in cluster_map(clustering)["series"]] == ["1", "2"]
    with pytest.raises(FilterError, match="no clustering 999"):
        filter_trajectories(indexed, "cluster=999.1")
    Trajectory.objects.filter(pk__in=flights).delete()
    assert [found.count for found in summarise_clusters(clustering)] == [4]
    delete_clustering(clustering=clustering, by=None)
    assert not ClusterMember.objects.exists()


def test_a_list_of_clusterings_takes_as_many_statements_as_one(
    indexed: Project, flights: set[int], django_assert_num_queries: Any
) -> None:
    several = [clustered(indexed, cluster_count=count) for count in (2, 3)]
    Trajectory.objects.filter(pk=min(flights)).update(success=True)
    with django_assert_num_queries(3):
        found = summarise_clusterings(several)
    for clustering in several:
        summaries = found[clustering.pk]
        assert len(summaries) == clustering.cluster_count
        assert sum(cluster.count for cluster in summaries) == 8
        assert sum(cluster.share for cluster in summaries) == pytest.approx(1)
        (known,) = [cluster for cluster in summaries if cluster.known]
        assert (known.known, known.success) == (1, 1.0)
        for cluster in summaries:
            mine = list(clustering.members.filter(cluster=cluster.place).order_by("distance", "pk")[:3])
            assert cluster.typical == mine
    assert index_counts(indexed).missing == 0
    TrajectoryPassage.objects.filter(trajectory=min(flights)).delete()
    assert (index_counts(indexed).trajectories, index_counts(indexed).indexed) == (8, 7)


def test_what_cannot_be_clustered_is_said(indexed: Project) -> None:
    with pytest.raises(DomainError, match="Index them first"):
        start_clustering(project=indexed, source="text=zebra")
    with pytest.raises(DomainError, match="choose 2 to 50"):
        start_clustering(project=indexed, cluster_count=1)
    clustering = clustered(indexed, cluster_count=20)
    assert clustering.state == "failed" and "choose 2 to 8" in clustering.error


def test_pages(indexed: Project, client: Client, researcher: User, settings: Any) -> None:
    client.force_login(researcher)
    base = "/p/desk/"
    settings.REWARDS_ADDRESS = "http://127.0.0.1:9"
    down = client.get(f"{base}semantic-search/?q=flight")
    assert down.status_code == 422 and "reward service cannot be reached" in down.content.decode()
    like = client.get(f"{base}semantic-search/?like={Trajectory.objects.first().pk}").content.decode()  # type: ignore[union-attr]
    assert like.count('<tr role="row" data-row') == 7
    assert client.get(f"{base}semantic-search/?like=x").status_code == 422
    flights = list(Trajectory.objects.filter(project=indexed).order_by("pk"))
    part = f"{base}semantic-search/trajectories/{flights[0].pk}/"
    near = client.get(part, headers={"HX-Request": "true"}).content.decode()
    assert near.count('title="Cosine similarity"') == 5 and f"?like={flights[0].pk}" in near
    assert (
        f"/trajectories/{flights[0].pk}/" not in near
        and part in client.get(f"{base}trajectories/{flights[0].pk}/").content.decode()
    )
    assert client.get(part).headers["location"] == f"{base}semantic-search/?like={flights[0].pk}"
    flights[0].passages.all().delete()
    assert (
        "once this one is in the index" in client.get(part, headers={"HX-Request": "true"}).content.decode()
    )
    wrong = client.post(f"{base}clusters/", {"filter": "text=zebra"})
    assert wrong.status_code == 422 and "Index them first" in wrong.content.decode()
    started = client.post(f"{base}clusters/", {"cluster_count": "2"})
    page = started.headers["location"]
    assert "hx-trigger" in client.get(page).content.decode()
    advance_clusterings()
    assert client.get(f"{page}status/").headers["HX-Refresh"] == "true"
    shown = client.get(page).content.decode()
    assert "cluster-map" in shown and "?cluster=" in shown
    assert client.get(f"{page}0/").content.decode().count("<tr>") == 5
    assert client.get(f"{page}7/").status_code == 404
    assert "Clustering" in client.get(f"{base}clusters/").content.decode()
    client.post(f"{page}delete/")
    assert not TrajectoryClustering.objects.exists()
