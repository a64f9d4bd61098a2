"""Charts as SVG: lines over the size of a tensor or over time, and bars side by side."""

import math
from dataclasses import dataclass
from xml.sax.saxutils import escape

# Okabe and Ito's colours, which the colour-blind tell apart; in print the dashes do.
STYLES = (("#0072b2", "none"), ("#d55e00", "7 3"), ("#009e73", "2 3"), ("#cc79a7", "9 3 2 3"),
          ("#e69f00", "4 4"), ("#333333", "12 4"))
# Pixels.
WIDTH, HEIGHT, HEADER = 520, 340, 70
LEFT, RIGHT, TOP, BOTTOM = 75, 20, 30, 50
BAR_HEIGHT, BAR_GAP = 16, 10


@dataclass(frozen=True)
class Panel:
    """One chart of lines: name: [(bytes, value)]. Logarithmic, unless `linear` (from 0).

    Where `across` is neither bytes nor hosts but another unit, that axis is linear, from its first
    value on.
    """
    title: str
    unit: str
    series: dict
    linear: bool = False
    across: str = "bytes"


@dataclass(frozen=True)
class Group:
    """Bars that are compared with each other: name: value."""
    title: str
    values: dict


def text(x, y, words, anchor="start", more=""):
    return f'<text x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}"{more}>{escape(words)}</text>'


def line(x1, y1, x2, y2, colour="#dddddd", dashes="none", width=1):
    return (f'<line x1="{x1:.1f}" y1="{y1:.1f}" x2="{x2:.1f}" y2="{y2:.1f}" stroke="{colour}" '
            f'stroke-dasharray="{dashes}" stroke-width="{width}"/>')


def document(width, height, heading, parts):
    return "\n".join([
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{width:.0f}" height="{height:.0f}" '
        'font-family="sans-serif" font-size="12">',
        '<rect width="100%" height="100%" fill="white"/>',
        text(20, 28, heading, more=' font-size="16"'), *parts, "</svg>", ""])


def legend(names):
    parts, x = [], 20
    for index, name in enumerate(names):
        colour, dashes = STYLES[index % len(STYLES)]
        parts += [line(x, 52, x + 36, 52, colour, dashes, 3), text(x + 42, 56, name)]
        x += 66 + 7 * len(name)
    return parts


def byte_label(exponent):
    for power, unit in ((30, "G"), (20, "M"), (10, "K")):
        if exponent >= power:
            return f"{2 ** (exponent - power)}{unit}"
    return str(2**exponent)


class Scale:
    """From values to pixels, with ticks at (value, label)."""

    def __init__(self, least, most, begin, end, ticks, mapped):
        self.low, self.high, self.mapped = mapped(least), mapped(most), mapped
        self.begin, self.end, self.ticks = begin, end, ticks

    def at(self, value):
        part = (self.mapped(value) - self.low) / (self.high - self.low)
        return self.begin + part * (self.end - self.begin)


def byte_scale(values, begin, end):
    first, last = math.floor(math.log2(min(values))), math.ceil(math.log2(max(values)))
    last = max(last, first + 1)
    step = max(1, math.ceil((last - first) / 8))
    ticks = [(2**one, byte_label(one)) for one in range(first, last + 1, step)]
    return Scale(2**first, 2**last, begin, end, ticks, math.log2)


def decimal_scale(values, begin, end):
    first, last = math.floor(math.log10(min(values))), math.ceil(math.log10(max(values)))
    last = max(last, first + 1)
    ticks = [(10.0**one, f"{10**one:,}" if one >= 0 else f"{10.0**one:g}")
             for one in range(first, last + 1)]
    return Scale(10.0**first, 10.0**last, begin, end, ticks, math.log10)


def linear_scale(most, begin, end):
    step = 10.0 ** math.floor(math.log10(most / 2))
    step *= next(factor for factor in (1, 2, 5, 10) if most / (step * factor) <= 6)
    count = math.ceil(most / step)
    ticks = [(step * one, f"{step * one:g}") for one in range(count + 1)]
    return Scale(0, step * count, begin, end, ticks, float)


def range_scale(values, begin, end):
    first, last = math.floor(min(values)), math.ceil(max(values))
    return Scale(first, last, begin, end, [(one, str(one)) for one in range(first, last + 1)],
                 float)


def panel_at(panel, offset, names):
    points = [point for series in panel.series.values() for point in series]
    left, right = offset + LEFT, offset + WIDTH - RIGHT
    top, bottom = HEADER + TOP, HEADER + HEIGHT - BOTTOM
    values = [value for _, value in points]
    x = (byte_scale if panel.across in ("bytes", "hosts") else range_scale)(
        [place for place, _ in points], left, right)
    y = (linear_scale(max(values), bottom, top) if panel.linear
         else decimal_scale(values, bottom, top))
    parts = [text((left + right) / 2, top - 10, panel.title, "middle", ' font-weight="bold"')]
    for value, label in x.ticks:
        parts += [line(x.at(value), top, x.at(value), bottom),
                  text(x.at(value), bottom + 18, label, "middle")]
    for value, label in y.ticks:
        parts += [line(left, y.at(value), right, y.at(value)),
                  text(left - 8, y.at(value) + 4, label, "end")]
    parts += [text((left + right) / 2, bottom + 38, panel.across, "middle"),
              text(left - 8, top - 10, panel.unit, "end")]
    for name, series in panel.series.items():
        colour, dashes = STYLES[names.index(name) % len(STYLES)]
        places = [(x.at(size), y.at(value)) for size, value in series]
        path = " ".join(f"{across:.1f},{up:.1f}" for across, up in places)
        parts.append(f'<polyline points="{path}" fill="none" stroke="{colour}" stroke-width="2" '
                     f'stroke-dasharray="{dashes}"/>')
        parts += [f'<circle cx="{across:.1f}" cy="{up:.1f}" r="2.5" fill="{colour}"/>'
                  for across, up in places]
    return parts


def lines(heading, panels):
    """Panels side by side: lines of one name look the same in all of them."""
    names = list(dict.fromkeys(name for panel in panels for name in panel.series))
    parts = legend(names)
    for index, panel in enumerate(panels):
        parts += panel_at(panel, index * WIDTH, names)
    return document(WIDTH * len(panels), HEADER + HEIGHT, heading, parts)


def bars(heading, unit, groups):
    """Groups one below the other: bars of one name look the same in all of them."""
    names = list(dict.fromkeys(name for group in groups for name in group.values))
    left, right, y = 200, 2 * WIDTH - 120, HEADER + 10
    x = linear_scale(max(value for group in groups for value in group.values.values()), left, right)
    height = sum(BAR_HEIGHT * len(group.values) + BAR_GAP for group in groups)
    parts = legend(names)
    for value, label in x.ticks:
        parts += [line(x.at(value), y, x.at(value), y + height),
                  text(x.at(value), y + height + 18, label, "middle")]
    parts.append(text(right + 40, y + height + 18, unit))
    for group in groups:
        middle = y + BAR_HEIGHT * len(group.values) / 2
        parts.append(text(left - 10, middle + 4, group.title, "end"))
        for name, value in group.values.items():
            colour = STYLES[names.index(name) % len(STYLES)][0]
            parts += [f'<rect x="{left}" y="{y}" width="{x.at(value) - left:.1f}" '
                      f'height="{BAR_HEIGHT - 2}" fill="{colour}"/>',
                      text(x.at(value) + 6, y + 12, f"{value:.3g}")]
            y += BAR_HEIGHT
        y += BAR_GAP
    return document(2 * WIDTH, y + 40, heading, parts)
