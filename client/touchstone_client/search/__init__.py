"""Search for better trajectories without training, with an endpoint as the only guide. Pure Python.

    score = Scorer(client, lambda prompt, answer: {"prompt": prompt, "response": answer})
    searches = {prompt: BestOfN(partial(policy, prompt)) for prompt in prompts}
    best = run(searches, score, budget=16 * len(prompts))
    best[prompt].value, best[prompt].reward

Every method proposes candidates one at a time and learns their scores, so that `run` scores those of many prompts in
one request, and all methods cost the same: a scored candidate. `ExperienceNotes` is what a language model learns from
scored groups, in words.
"""

from touchstone_client.search.beam import BeamSearch
from touchstone_client.search.notes import ExperienceNotes, NotesRefused
from touchstone_client.search.running import Scored, Scorer, Search, expected_improvement, run
from touchstone_client.search.sampling import BestOfN, Refinement
from touchstone_client.search.tree import TreeSearch

__all__ = [
    "BeamSearch",
    "BestOfN",
    "ExperienceNotes",
    "NotesRefused",
    "Refinement",
    "Scored",
    "Scorer",
    "Search",
    "TreeSearch",
    "expected_improvement",
    "run",
]
