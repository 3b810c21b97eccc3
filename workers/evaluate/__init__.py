"""How good a reward model is: metrics and reports."""

from workers.evaluate.comparison import compare
from workers.evaluate.predictions import RecordScorer
from workers.evaluate.preference import Prediction, accuracy_report
from workers.evaluate.report import evaluate, predict

__all__ = ["Prediction", "RecordScorer", "accuracy_report", "compare", "evaluate", "predict"]
