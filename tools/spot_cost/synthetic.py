"""A trace of our own: made at random, in the format of SkyPilot's.

The number of machines follows three states, each of which lasts for an exponential time: plenty (all
machines), scarce (between a quarter and three quarters of them, drawn anew every half an hour or so),
and none. The mean times are a choice, not a fit to any cloud.
"""

import random

MEAN_MINUTES = {"plenty": 240, "scarce": 120, "none": 40}
NEXT = {"plenty": ("scarce", "scarce", "none"), "scarce": ("plenty", "plenty", "none"),
        "none": ("scarce", "plenty")}
REDRAW_MINUTES = 30


def scarce(rng, most):
    return rng.randint(max(1, most // 4), max(1, 3 * most // 4))


def synthetic(seed, days, most, gap):
    """The object of the file."""
    rng = random.Random(seed)
    state, left, data = "plenty", rng.expovariate(1 / MEAN_MINUTES["plenty"]), []
    level = most
    for _ in range(int(days * 86400 // gap)):
        data.append({"plenty": most, "scarce": level, "none": 0}[state])
        left -= gap / 60
        if left <= 0:
            state = rng.choice(NEXT[state])
            left = rng.expovariate(1 / MEAN_MINUTES[state])
            level = scarce(rng, most)
        elif rng.random() < gap / 60 / REDRAW_MINUTES:
            level = scarce(rng, most)
    return {"metadata": {"gap_seconds": gap, "made_by": "tools/spot_cost synthesize", "seed": seed},
            "data": data}
