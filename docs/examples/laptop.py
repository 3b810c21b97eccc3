"""From traces to rewards, from a laptop: import, annotate, train, deploy, score. docs/client.md explains each step.

Needs TOUCHSTONE_URL, TOUCHSTONE_PROJECT, TOUCHSTONE_KEY, LANGFUSE_HOST, LANGFUSE_PUBLIC_KEY, LANGFUSE_SECRET_KEY.
"""

import os
from collections import defaultdict

import httpx
from touchstone_client import Client


def pages(langfuse, kind):
    page, last = 1, 1
    while page <= last:
        reply = langfuse.get(f"/api/public/{kind}", params={"page": page, "limit": 100}).raise_for_status()
        yield from reply.json()["data"]
        page, last = page + 1, reply.json()["meta"]["totalPages"]


def main():
    login = os.environ["LANGFUSE_PUBLIC_KEY"], os.environ["LANGFUSE_SECRET_KEY"]
    with httpx.Client(base_url=os.environ["LANGFUSE_HOST"], auth=login) as langfuse, Client() as client:
        observations = defaultdict(list)
        for observation in pages(langfuse, "observations"):
            observations[observation["traceId"]].append(observation)
        traces = (
            {"trace": trace, "observations": observations[trace["id"]]} for trace in pages(langfuse, "traces")
        )
        print(client.trajectories.import_file(traces, format="langfuse", progress=True))
        campaign = client.campaigns.create("Better answer", ["pairwise"], items={"size": 2, "differ": "any"})
        client.campaigns.wait(campaign, progress=True)  # until the annotators are done, in their browsers
        annotations = client.feedback.iter(campaign="Better answer").to_pandas()
        print(annotations.groupby("annotator").choice.value_counts())
        dataset = client.datasets.wait(client.datasets.freeze("answers", campaigns=["Better answer"]))
        recipe = {"objective": "bradley_terry", "backbone": "linear"}
        run = client.runs.wait(client.runs.start(dataset, recipe=recipe), progress=True)
        reason = "A first model of few annotations, to try the endpoint"  # where a check of the model failed
        client.endpoints.wait(client.endpoints.deploy(run, "answers", reason=reason))
        newest = client.trajectories.list().take(10)
        print(client.rewards("answers").score([{"trajectory_id": each.id} for each in newest]).rewards)


if __name__ == "__main__":
    main()
