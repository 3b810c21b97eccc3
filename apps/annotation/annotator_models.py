"""Annotators' reliability from their answers alone, by models of how answers come about.

Answers are three arrays of one length: the item, the annotator and the label of each, as indices from 0.
"""

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray
from scipy.special import digamma, logsumexp

Indices = NDArray[np.intp]
Floats = NDArray[np.float64]
_LEAST = 1e-10  # chance of what never happened
_STRATEGY_PRIOR = 10.0


@dataclass(frozen=True)
class AnswerTable:
    """items, annotators, labels: [answers]."""

    items: Indices
    annotators: Indices
    labels: Indices

    @property
    def shape(self) -> tuple[int, int, int]:
        """How many items, annotators and labels there are."""
        return int(self.items.max()) + 1, int(self.annotators.max()) + 1, int(self.labels.max()) + 1

    @cached_property
    def item_labels(self) -> Indices:
        """Places of the answers in a flat [items, labels]. [answers]"""
        return self.items * self.shape[2] + self.labels

    @cached_property
    def annotator_labels(self) -> Indices:
        """Places of the answers in a flat [annotators, labels]. [answers]"""
        return self.annotators * self.shape[2] + self.labels

    def sum_by_item_and_label(self, weights: Floats | None = None) -> Floats:
        """[items, labels]. weights: of the answers; None counts them."""
        items, _, labels = self.shape
        sums = np.bincount(self.item_labels, weights, minlength=items * labels)
        return sums.astype(np.float64, copy=False).reshape(items, labels)

    def sum_by_annotator_and_label(self, weights: Floats) -> Floats:
        """[annotators, labels]"""
        _, annotators, labels = self.shape
        sums = np.bincount(self.annotator_labels, weights, minlength=annotators * labels).astype(float)
        found: Floats = sums.reshape(annotators, labels)
        return found

    def sum_by_item(self, weights: Floats) -> Floats:
        """[items]"""
        sums: Floats = np.bincount(self.items, weights, minlength=self.shape[0]).astype(
            np.float64, copy=False
        )
        return sums


def dawid_skene_accuracy(table: AnswerTable, *, iterations: int = 30, tolerance: float = 1e-5) -> Floats:
    """Of each annotator the chance of the right label, over how frequent labels are. [annotators]

    Dawid and Skene (1979), "Maximum Likelihood Estimation of Observer Error-Rates Using the EM Algorithm", equations
    2.3 to 2.5: begins with the share of each label in an item's answers, and stops where crowd-kit's does, once its
    bound rises by less than `tolerance` per answer. With two or three answers to an item, going on until nothing
    changes comes out further from the truth (docs/decisions.md).
    """
    items, given = table.items, (table.annotators, table.labels)
    truth = table.sum_by_item_and_label()
    truth /= truth.sum(axis=1, keepdims=True)
    priors, errors = truth.mean(axis=0).clip(_LEAST), _error_rates(table, truth)
    bound = -np.inf
    for _ in range(iterations):
        evidence = np.log(errors)[given]  # [answers, labels]
        log_truth = np.log(priors) + np.stack([table.sum_by_item(each) for each in evidence.T], axis=1)
        truth = np.exp(log_truth - logsumexp(log_truth, axis=1, keepdims=True))
        priors, errors = truth.mean(axis=0).clip(_LEAST), _error_rates(table, truth)
        joint = (truth[items] * (np.log(errors) + np.log(priors))[given]).sum()
        new_bound = (joint - (truth * np.log(truth.clip(_LEAST))).sum()) / len(items)
        if new_bound - bound < tolerance:
            break
        bound = new_bound
    right: Floats = np.einsum("ajj,j->a", errors, priors)
    return right


def _error_rates(table: AnswerTable, truth: Floats) -> Floats:
    """How often an annotator gives each label where another is right: [annotators, given, right]."""
    beliefs = truth[table.items]  # [answers, right]
    counts = np.stack([table.sum_by_annotator_and_label(belief) for belief in beliefs.T], axis=2).clip(_LEAST)
    rates: Floats = counts / counts.sum(axis=1, keepdims=True)
    return rates


def mace_competence(
    table: AnswerTable, *, restarts: int = 3, iterations: int = 30, noise: float = 0.5, seed: int = 0
) -> Floats:
    """Of each annotator the chance to answer by the item rather than by a habit. [annotators]

    Hovy, Berg-Kirkpatrick, Vaswani and Hovy (2013), "Learning Whom to Trust with MACE", section 3, by variational Bayes
    with Beta(0.5, 0.5) on the competence and a symmetric Dirichlet(10) on habits; the likeliest of the restarts.
    """
    draw = np.random.default_rng(seed)
    best, competence = -np.inf, np.zeros(table.shape[1])
    for _ in range(restarts):
        likelihood, found = _mace_once(table, iterations, noise, draw)
        if likelihood > best:
            best, competence = likelihood, found
    return competence


def _mace_once(
    table: AnswerTable, iterations: int, noise: float, draw: np.random.Generator
) -> tuple[float, Floats]:
    annotators = table.annotators
    _, annotator_count, label_count = table.shape
    chances = draw.uniform(1, 2 + noise, (annotator_count, 2))
    habit, knows = (chances / chances.sum(axis=1, keepdims=True)).T
    strategy = draw.uniform(1, 2 + noise, (annotator_count, label_count))
    strategy /= strategy.sum(axis=1, keepdims=True)
    answered = np.bincount(annotators, minlength=annotator_count)
    likelihood = -np.inf
    for step in range(iterations + 1):
        by_habit = habit[:, np.newaxis] * strategy  # [annotators, labels]
        by_any = by_habit + knows[:, np.newaxis]
        log_habit, log_any = np.log(by_habit), np.log(by_any)
        # Of each item and label: what its answers are worth if that label is right.
        log_truth = table.sum_by_item(log_habit.ravel()[table.annotator_labels])[:, np.newaxis]
        log_truth = log_truth + table.sum_by_item_and_label(
            (log_any - log_habit).ravel()[table.annotator_labels]
        )
        log_item = logsumexp(log_truth, axis=1) - np.log(label_count)
        likelihood = float(log_item.sum())
        if step == iterations:
            break
        truth = np.exp(log_truth - np.log(label_count) - log_item[:, np.newaxis])  # [items, labels]
        knew_if_right = (knows[:, np.newaxis] / by_any).ravel()
        knew = truth.ravel()[table.item_labels] * knew_if_right[table.annotator_labels]  # [answers]
        known = np.bincount(annotators, weights=knew, minlength=annotator_count)
        habits = table.sum_by_annotator_and_label(1 - knew)
        total = digamma(answered + 1.0)
        habit = np.exp(digamma(answered - known + 0.5) - total)
        knows = np.exp(digamma(known + 0.5) - total)
        prior = habits + _STRATEGY_PRIOR
        strategy = np.exp(digamma(prior) - digamma(prior.sum(axis=1, keepdims=True)))
    return likelihood, knows
