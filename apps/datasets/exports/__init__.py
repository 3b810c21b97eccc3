"""Exports of dataset versions: the table of formats is in `formats`, a download in `downloads`.

Every row of feedback has its `origin`, so that labels of judges can be distinguished from labels of people.
"""

from apps.datasets.exports.columns import LeftOut
from apps.datasets.exports.formats import EXPORTS, FOLDER_EXPORTS, FORMATS, require_format

__all__ = ["EXPORTS", "FOLDER_EXPORTS", "FORMATS", "LeftOut", "require_format"]
