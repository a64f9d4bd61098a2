"""All strategies over many start times, and how the result depends on discount and boot time."""

import dataclasses
import math
import random

from elastic import elastic
from fixed import on_demand, spot_with_checkpoints

STRATEGIES = ("on demand", "spot, checkpoints", "elastic")
QUANTILES = (0.1, 0.5, 0.9)


def start_times(trace, runs, seed):
    """Seconds from the trace's beginning, evenly distributed."""
    rng = random.Random(seed)
    return [rng.uniform(0, trace.seconds) for _ in range(runs)]


def quantile(values, share):
    """The smallest value that so large a share of them does not exceed. Infinite ones are the last."""
    ordered = sorted(values)
    return ordered[max(0, math.ceil(share * len(ordered)) - 1)]


def outcomes(setting, trace, starts, limit):
    """strategy: an outcome for each start."""
    return {"on demand": [on_demand(setting)] * len(starts),
            "spot, checkpoints": [spot_with_checkpoints(setting, trace, at, limit) for at in starts],
            "elastic": [elastic(setting, trace, at, limit) for at in starts]}


def with_change(setting, discount, boot):
    return dataclasses.replace(
        setting, prices=dataclasses.replace(setting.prices, discount=discount),
        delays=dataclasses.replace(setting.delays, boot=boot))


def medians(setting, trace, starts, limit):
    """strategy: (hours, dollars), compared with those on demand."""
    base = on_demand(setting)
    return {name: (quantile([one.seconds for one in runs], 0.5) / base.seconds,
                   quantile([one.dollars for one in runs], 0.5) / base.dollars)
            for name, runs in outcomes(setting, trace, starts, limit).items()}


def sensitivity(setting, trace, starts, limit, discounts, boots):
    """[(discount, boot, medians)]"""
    return [(discount, boot, medians(with_change(setting, discount, boot), trace, starts, limit))
            for discount in discounts for boot in boots]
