"""`client.semantic_search`, `client.clusterings`: trajectories by meaning, without a language model. Scope `train`."""

from datetime import datetime

from touchstone_client.api_objects import ApiObject, ObjectReader, api_object
from touchstone_client.calls import (
    Calls,
    DriverT,
    Flow,
    Request,
    flow_operation,
    given,
    list_operation,
    operation,
)
from touchstone_client.jobs import JobProgress, wait_for
from touchstone_client.listings import Pages
from touchstone_client.progress import Progress


@api_object
class FoundPassage(ApiObject):
    """Steps first_step to last_step of a trajectory. similarity: cosine, at most 1."""

    trajectory: str
    external_id: str = ""
    task: str = ""
    first_step: int = 0
    last_step: int = 0
    similarity: float = 0.0
    excerpt: str = ""


@api_object
class FoundPassages(ApiObject):
    """The most similar first."""

    items: tuple[FoundPassage, ...]


@api_object
class Cluster(ApiObject):
    """filter: the filter that admits its trajectories. success: of those with a known outcome; interval: its 95 %."""

    cluster: int
    terms: tuple[str, ...] = ()
    count: int = 0
    share: float = 0.0
    success: float | None = None
    interval: tuple[float, ...] | None = None
    filter: str = ""
    typical: tuple[str, ...] = ()


@api_object
class Clustering(ApiObject):
    """matching: trajectories that passed the filter; clustered: of these in the clusters, the largest of which is the
    first."""

    id: int
    state: str
    filter: str = ""
    cluster_count: int | None = None
    matching: int = 0
    clustered: int = 0
    silhouette: float | None = None
    progress: JobProgress = JobProgress()
    error: str = ""
    clusters: tuple[Cluster, ...] = ()
    created: datetime | None = None
    finished: datetime | None = None


class SemanticSearch(Calls[DriverT]):
    @operation
    def search(
        self, q: str, *, filter: str | None = None, limit: int | None = None
    ) -> Request[FoundPassages]:
        """The nearest passage of each indexed trajectory that passes the filter."""
        params = {"q": q, **given(filter=filter, limit=limit)}
        return Request("GET", self._path("semantic-search"), ObjectReader(FoundPassages), params=params)

    @operation
    def similar(self, trajectory: int | str, *, limit: int | None = None) -> Request[FoundPassages]:
        """Trajectories with the passages nearest to the mean of this one's."""
        path = self._path("trajectories", trajectory, "similar")
        return Request("GET", path, ObjectReader(FoundPassages), params=given(limit=limit))


class Clusterings(Calls[DriverT]):
    @operation
    def create(self, *, filter: str | None = None, cluster_count: int | None = None) -> Request[Clustering]:
        """Of the indexed trajectories that pass the filter now. cluster_count: by default chosen by the silhouette."""
        body = given(filter=filter, cluster_count=cluster_count)
        return Request("POST", self._path("clusterings"), ObjectReader(Clustering), json=body)

    @operation
    def get(self, clustering: int | Clustering) -> Request[Clustering]:
        return Request("GET", self._path("clusterings", clustering), ObjectReader(Clustering))

    @flow_operation
    def wait(
        self, clustering: int | Clustering, *, timeout: float | None = None, progress: Progress = False
    ) -> Flow[Clustering]:
        """Wait until it is computed. Raises JobFailed unless that succeeded, TimeoutError after `timeout` seconds."""
        number = clustering if isinstance(clustering, int) else clustering.id
        request = Request("GET", self._path("clusterings", clustering), ObjectReader(Clustering))
        return wait_for(request, name=f"clustering {number}", timeout=timeout, progress=progress)

    @list_operation
    def list(self, *, page_size: int | None = None) -> Pages[Clustering]:
        """Newest first."""
        return Pages(self._path("clusterings"), ObjectReader(Clustering), page_size=page_size)
