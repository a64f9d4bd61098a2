"""How many spot machines a zone has over time: the files of SkyPilot's public traces.

A file is one JSON object:

    {"metadata": {"gap_seconds": 300}, "data": [0, 5, 16, 16, 8], "prices": [0.9, 0.9, 0.9, 0.8, 0.8]}

`data` has the number of machines that can be had in each interval of `gap_seconds` seconds, and
`prices`, which may be left out, the price of one in dollars per hour. Other fields are ignored.
"""

import json
import math
from dataclasses import dataclass


class BadInput(Exception):
    """A file or an option that cannot be used: what is wrong, where, and what to do."""


@dataclass(frozen=True)
class Segment:
    """A part of a run in which the trace stays the same, in seconds since the run began."""
    begin: float
    end: float
    capacity: int
    price: float | None  # dollars per hour, where the trace has it


@dataclass(frozen=True)
class Trace:
    gap: float  # seconds
    capacities: tuple
    prices: tuple | None = None

    @property
    def seconds(self):
        return self.gap * len(self.capacities)

    def compressed(self, factor):
        return Trace(self.gap / factor, self.capacities, self.prices)

    def segments(self, start, limit):
        """From second `start` of the trace on, for `limit` seconds. Behind its end the trace begins again."""
        tick = int(start // self.gap)
        begin, end = 0.0, (tick + 1) * self.gap - start
        while begin < limit:
            at = tick % len(self.capacities)
            yield Segment(begin, min(end, limit), self.capacities[at],
                          self.prices[at] if self.prices else None)
            tick += 1
            begin, end = end, (tick + 1) * self.gap - start


def is_number(value):
    return isinstance(value, (int, float)) and not isinstance(value, bool) and math.isfinite(value)


def read_json(path, kind):
    """The object in a file of ours or of others."""
    try:
        content = json.loads(path.read_text())
    except OSError as error:
        raise BadInput(f"{path}: {error.strerror}: name a file with {kind}") from error
    except ValueError as error:
        raise BadInput(f"{path}: not JSON ({error}): name a file with {kind}") from error
    if not isinstance(content, dict):
        raise BadInput(f"{path}: is no JSON object: name a file with {kind}")
    return content


def read_gap(path, content):
    metadata = content.get("metadata")
    gap = metadata.get("gap_seconds") if isinstance(metadata, dict) else None
    if not is_number(gap) or gap <= 0:
        raise BadInput(f"{path}: metadata.gap_seconds is {gap!r}: "
                       "give the seconds between two points of data, above 0")
    return float(gap)


def read_capacities(path, content, ones_are_preempted):
    data = content.get("data")
    if not isinstance(data, list) or not data:
        raise BadInput(f"{path}: data is no list of numbers: give the available machines, one number "
                       "for each gap_seconds")
    for at, value in enumerate(data):
        if isinstance(value, bool) or not isinstance(value, int) or value < 0:
            raise BadInput(f"{path}: data[{at}] is {value!r}: give a whole number of machines, 0 or more")
        if ones_are_preempted and value > 1:
            raise BadInput(f"{path}: data[{at}] is {value}, a number of machines, and not preempted or "
                           "available: leave --ones preempted out")
    return tuple(1 - value for value in data) if ones_are_preempted else tuple(data)


def read_prices(path, content, count):
    prices = content.get("prices")
    if prices is None:
        return None
    if not isinstance(prices, list) or len(prices) != count:
        raise BadInput(f"{path}: prices has not as many entries as data, {count}: give a price for each, "
                       "or leave prices out")
    for at, price in enumerate(prices):
        if not is_number(price) or price < 0:
            raise BadInput(f"{path}: prices[{at}] is {price!r}: give dollars per hour of a machine")
    return tuple(map(float, prices))


def read_trace(path, ones_are_preempted=False):
    content = read_json(path, "an availability trace")
    gap = read_gap(path, content)
    capacities = read_capacities(path, content, ones_are_preempted)
    return Trace(gap, capacities, read_prices(path, content, len(capacities)))
