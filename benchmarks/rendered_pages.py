"""Pages and documents drawn here, in pairs that only the picture tells apart: one is better, the rest is alike."""

import random
from dataclasses import dataclass
from typing import Literal

import numpy as np
from PIL import Image, ImageDraw, ImageFont

from benchmarks.conditions import listed
from workers.schema.pictures import Pixels

Subject = Literal["colour", "banner", "button", "alignment", "spacing", "hierarchy"]
SUBJECTS: dict[str, tuple[Subject, ...]] = {
    "interfaces": ("colour", "banner", "button"),
    "documents": ("alignment", "spacing", "hierarchy"),
}
_WORDS = listed(
    "order invoice customer delivery address account balance report summary quarter revenue product item total price "
    "discount shipping payment status pending review team project deadline budget result figure table method data"
)
_PAPERS = ((255, 255, 255), (250, 248, 240), (243, 245, 250), (236, 240, 236))
_INKS = ((20, 20, 20), (45, 50, 70), (60, 45, 40), (30, 60, 55))
_ACCENTS = ((40, 90, 200), (110, 60, 170), (20, 120, 130), (90, 90, 100))
_GREENS = ((30, 150, 70), (60, 175, 95), (15, 120, 60), (120, 190, 110))
_REDS = ((200, 40, 40), (225, 80, 65), (170, 25, 45), (235, 120, 110))


@dataclass(frozen=True, slots=True)
class PicturePair:
    subject: Subject
    better: Pixels
    worse: Pixels


def picture_pair(subject: Subject, seed: str) -> PicturePair:
    """Both sides have the same content; each has the same small differences that say nothing."""
    return PicturePair(subject, _page(subject, seed, is_better=True), _page(subject, seed, is_better=False))


def _page(subject: Subject, seed: str, *, is_better: bool) -> Pixels:
    content, noise = random.Random(seed), random.Random(f"{seed}/{is_better}")
    drawing = _Drawing(content, noise)
    if subject in SUBJECTS["interfaces"]:
        _interface(drawing, subject, is_better=is_better)
    else:
        _document(drawing, subject, is_better=is_better)
    return np.asarray(drawing.image)


class _Drawing:
    """content: what both pages of a pair have. noise: what each has for itself: a shift of a few pixels, and whether
    the page was scrolled."""

    def __init__(self, content: random.Random, noise: random.Random) -> None:
        self.content, self.noise = content, noise
        self.size = content.choice(((640, 480), (800, 600), (720, 900), (1024, 768)))
        self.paper, self.ink = content.choice(_PAPERS), content.choice(_INKS)
        self.accent = content.choice(_ACCENTS)
        self.image = Image.new("RGB", self.size, self.paper)
        self.draw = ImageDraw.Draw(self.image)
        self.left, self.top = 24 + noise.randint(0, 24), 16 + noise.randint(0, 24)

    def words(self, count: int) -> str:
        return " ".join(self.content.choices(_WORDS, k=count))

    def text(
        self, x: float, y: float, text: str, size: int, fill: tuple[int, int, int] | None = None
    ) -> None:
        self.draw.text((x, y), text, font=_font(size), fill=fill or self.ink)


def _font(size: int) -> ImageFont.FreeTypeFont | ImageFont.ImageFont:
    return ImageFont.load_default(size)


def _interface(drawing: _Drawing, subject: Subject, *, is_better: bool) -> None:
    content, noise, (width, height) = drawing.content, drawing.noise, drawing.size
    drawing.draw.rectangle((0, 0, width, 40 + drawing.top), fill=drawing.accent)
    drawing.text(drawing.left, drawing.top, drawing.words(2), 20, (255, 255, 255))
    y = drawing.top + 60
    if subject == "banner":
        has_note = content.random() < 0.5  # a note that is no error, on both pages
        kinds = ([(40, 110, 210)] if has_note else []) + ([] if is_better else [content.choice(_REDS)])
        noise.shuffle(kinds)
        words = drawing.words(5)
        for fill in kinds:
            drawing.draw.rectangle((drawing.left, y, width - drawing.left, y + 34), fill=fill)
            drawing.text(drawing.left + 10, y + 8, words, 15, (255, 255, 255))
            y += 46
    if subject == "colour":
        fill = content.choice(_GREENS) if is_better else content.choice(_REDS)
        across, x = content.randint(80, 180), noise.randint(drawing.left, width - 220)
        drawing.draw.rounded_rectangle((x, y, x + across, y + content.randint(20, 60)), 8, fill=fill)
        y += 80
    for _ in range(content.randint(3, 7)):
        drawing.text(drawing.left, y, drawing.words(content.randint(3, 7)), 15)
        y += 28
    if subject == "button":
        y = min(y + 10, height - 60)
        x = drawing.left + content.randint(0, 120)
        for place, word in enumerate(("Save", "Discard")):
            is_lit = (place == 0) == is_better
            box = (x + 130 * place, y, x + 130 * place + 110, y + 38)
            drawing.draw.rounded_rectangle(
                box, 6, fill=drawing.accent if is_lit else drawing.paper, outline=drawing.accent, width=2
            )
            colour = (255, 255, 255) if is_lit else drawing.accent
            drawing.text(box[0] + 18, box[1] + 9, word, 16, colour)


def _document(drawing: _Drawing, subject: Subject, *, is_better: bool) -> None:
    """Headings and paragraphs. alignment: lines begin at one place, or not; spacing: gaps are even, or not; hierarchy:
    headings are larger than the text, or of any size."""
    content, noise, height = drawing.content, drawing.noise, drawing.size[1]
    size, gap = content.randint(13, 17), content.randint(6, 12)
    x, y = float(drawing.left + content.randint(0, 60)), float(drawing.top)
    is_messy = not is_better
    while y < height - 60:
        heading = size + content.randint(8, 14)
        if subject == "hierarchy" and is_messy:
            heading = size + noise.choice((-3, 0, 0, 2))
        lines = [(drawing.words(content.randint(2, 4)), heading)]
        lines += [(drawing.words(content.randint(4, 8)), size) for _ in range(content.randint(2, 5))]
        for words, font in lines:
            shift = noise.choice((-18, -9, 0, 8, 14, 26)) if subject == "alignment" and is_messy else 0
            drawing.text(x + shift, y, words, font)
            extra = noise.choice((-gap, 0, gap, 3 * gap)) if subject == "spacing" and is_messy else 0
            y += font + gap + extra
        y += 2 * gap
