r"""Mathematical answers: the last \boxed{...}, and whether two of them are the same.

The clean-up follows the evaluation of MATH (Hendrycks et al., arXiv 2103.03874, `math_equivalence`). In addition, two
numbers that differ in form only (1,000 and 1000, \frac{1}{2} and 0.5) are equal.
"""

import math

from workers.schema.patterns import TextPattern

_BOXES = ("\\boxed", "\\fbox")
_FRACTION = TextPattern(r"\\frac\{(-?[\d.]{1,30})\}\{(-?[\d.]{1,30})\}")
_SLASH = TextPattern(r"(-?\d{1,30})/(-?\d{1,30})")
_PLAIN = TextPattern(r"[+-]?(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d{1,3})?")
_BARE_ROOT = TextPattern(r"\\sqrt([^{])")
_BARE_FRACTION = TextPattern(r"\\frac([^{\\])([^{\\])")
_BARE_TOP = TextPattern(r"\\frac([^{\\])\{")
_GONE = ("\n", "\\!", "\\left", "\\right", "^{\\circ}", "^\\circ", "\\$", "$", "\\%", "%", "\\,", "\\;")


def last_boxed(text: str) -> str | None:
    r"""What is in the last \boxed{...} or \fbox{...}; None without one whose braces are closed."""
    start, mark = max((text.rfind(mark), mark) for mark in _BOXES)
    if start < 0:
        return None
    at = start + len(mark)
    if text[at : at + 1] == " ":  # \boxed 5
        return text[at + 1 :].partition("$")[0].strip()
    depth = 0
    for place in range(at, len(text)):
        depth += {"{": 1, "}": -1}.get(text[place], 0)
        if depth == 0:
            return text[at + 1 : place].strip() if text[at] == "{" else None
    return None


def same_math(answer: str, right: str, *, relative: float, absolute: float) -> bool:
    """Whether two texts are one mathematical answer: equal after the clean-up, or equal numbers."""
    mine, theirs = cleaned(answer), cleaned(right)
    if mine == theirs:
        return True
    first, second = number_of(mine), number_of(theirs)
    if first is None or second is None:
        return False
    return math.isclose(first, second, rel_tol=min(relative, 1.0), abs_tol=absolute)


def cleaned(text: str) -> str:
    """LaTeX with one spelling of fractions, roots and decimals, without units, spaces and signs of formatting."""
    text = text.strip().rstrip(".").replace("\\\\", "\\").replace("tfrac", "frac").replace("dfrac", "frac")
    for gone in _GONE:
        text = text.replace(gone, "")
    text = text.partition("\\text{ ")[0].replace(" .", " 0.").replace("{.", "{0.")
    before, sign, after = text.partition("=")
    if sign and len(before.strip()) <= 2:
        text = after
    text = text.replace(" ", "")
    if text.startswith("."):
        text = "0" + text
    text = _BARE_ROOT.sub(r"\\sqrt{\1}", text)
    text = _BARE_TOP.sub(r"\\frac{\1}{", _BARE_FRACTION.sub(r"\\frac{\1}{\2}", text))
    slash = _SLASH.fullmatch(text)
    if slash is not None:
        text = f"\\frac{{{slash[1]}}}{{{slash[2]}}}"
    return "\\frac{1}{2}" if text == "0.5" else text


def number_of(text: str) -> float | None:
    """The finite number that a text is: with thousands separators, a currency or percent sign, or as a fraction."""
    text = (
        text.strip().replace(",", "").replace("$", "").replace("\\%", "").replace("%", "").strip().rstrip(".")
    )
    sign = -1.0 if text.startswith("-\\frac") else 1.0
    fraction = _FRACTION.fullmatch(text.removeprefix("-") if sign < 0 else text) or _SLASH.fullmatch(text)
    try:
        if fraction is not None:
            value = sign * float(fraction[1]) / float(fraction[2])
        elif _PLAIN.fullmatch(text) is not None:
            value = float(text)
        else:
            return None
    except (ValueError, ZeroDivisionError):
        return None
    return value if math.isfinite(value) else None
