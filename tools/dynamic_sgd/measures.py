"""What a training's steps come to."""

import math
import statistics

BINS = 8  # of a curve, in an epoch


def loss(step):
    """One that was not finite is null in the program's lines."""
    value = step["held_out_loss"]
    return math.inf if value is None else value


def epoch_samples(steps, plan):
    return steps[-1]["samples"] / plan.epochs


def between(steps, plan, first, last):
    """The steps of epochs from `first` on and before `last`."""
    epoch = epoch_samples(steps, plan)
    return [step for step in steps if first * epoch < step["samples"] <= last * epoch]


def around(steps, plan, change, end):
    """What happened from a change to the next, by the epoch before it."""
    before = between(steps, plan, change - 1, change)
    after, first = between(steps, plan, change, end), between(steps, plan, change, change + 1)
    usual = statistics.mean(map(loss, before))
    return {"first_peak": max(map(loss, first)) / usual, "peak": max(map(loss, after)) / usual,
            "lowest": min(step["accuracy"] for step in after),
            "before": statistics.mean(step["accuracy"] for step in before)}


def measured(steps, plan):
    """Figures of one training, as in a row of the results."""
    grown = around(steps, plan, plan.grow_at, plan.shrink_at)
    shrunk = around(steps, plan, plan.shrink_at, plan.epochs)
    return {"steps": len(steps),
            **{f"grown_{name}": value for name, value in grown.items()},
            **{f"shrunk_{name}": value for name, value in shrunk.items()},
            "final": steps[-1]["accuracy"]}


def curve(steps, plan):
    """The held-out loss, meaned over each eighth of an epoch: bin: loss."""
    width = epoch_samples(steps, plan) / BINS
    bins = {}
    for step in steps:
        bins.setdefault(math.ceil(step["samples"] / width) - 1, []).append(loss(step))
    return {at: statistics.mean(losses) for at, losses in bins.items()}


def mean_curve(curves):
    """Over seeds: [(epoch, loss)]. A large batch may leave a bin out in one of them."""
    points = []
    for at in sorted(set().union(*curves)):
        losses = [one[at] for one in curves if at in one]
        points.append(((at + 0.5) / BINS, float(f"{statistics.mean(losses):.4g}")))
    return points


def agreement(real, simulated):
    """Of the same cell: steps until the first loss with other bits, and the largest difference."""
    def known(step):
        return {key: step[key] for key in ("step", "workers", "samples", "gamma", "rate")}

    if list(map(known, real)) != list(map(known, simulated)):
        return {"same_plan": False}
    apart = [abs(loss(one) - loss(other)) / loss(other) if loss(one) != loss(other) else 0.0
             for one, other in zip(real, simulated)]
    return {"same_plan": True, "equal_steps": next((at for at, by in enumerate(apart) if by),
                                                   len(apart)),
            "largest_difference": max(apart)}
