"""The two baselines, both with a fixed number of workers.

On demand: all machines are there from the start to the end.

Spot with checkpoints: the job waits until as many machines can be had at once, which costs nothing. It
trains until one of them is taken, gives the others back, and begins again from its last checkpoint.
"""

import math
from dataclasses import dataclass

from outcome import Outcome
from setting import HOUR


def on_demand(setting):
    job = setting.job
    training = job.samples / setting.learning_rate(job.workers)
    seconds = setting.delays.start + training
    return Outcome(seconds, job.workers * seconds * setting.prices.on_demand / HOUR,
                   training / setting.step_seconds(job.workers), job.samples)


def training_within(elapsed, delays):
    """Seconds of training, and those of them that are saved, `elapsed` seconds after it began."""
    cycle = delays.checkpoint_every + delays.checkpoint_write
    saved = math.floor(elapsed / cycle) * delays.checkpoint_every
    rest = elapsed % cycle
    return saved + min(rest, delays.checkpoint_every), saved


def elapsed_for(training, delays):
    """Seconds that so much training takes. No checkpoint is written at its end."""
    written = max(0, math.ceil(training / delays.checkpoint_every) - 1)
    return training + written * delays.checkpoint_write


@dataclass(frozen=True)
class Episode:
    """A time in which all machines of the job can be had."""
    begin: float
    end: float
    parts: tuple  # segments

    def price(self, prices, until):
        """Dollars for one machine from the beginning until then."""
        return sum((min(part.end, until) - part.begin) * prices.spot(part) / HOUR
                   for part in self.parts if part.begin < until)


def episodes(segments, workers):
    parts = []
    for segment in segments:
        if segment.capacity >= workers:
            parts.append(segment)
        elif parts:
            yield Episode(parts[0].begin, parts[-1].end, tuple(parts))
            parts = []
    if parts:
        yield Episode(parts[0].begin, parts[-1].end, tuple(parts))


def spot_with_checkpoints(setting, trace, start, limit):
    job, delays = setting.job, setting.delays
    needed = job.samples / setting.learning_rate(job.workers)  # seconds of training
    saved = made = lost = dollars = 0.0
    losses = 0

    def steps(training):
        return training / setting.step_seconds(job.workers)

    for episode in episodes(trace.segments(start, limit), job.workers):
        ready = episode.begin + delays.start + (delays.restart if saved else 0.0)
        end = ready + elapsed_for(needed - saved, delays)
        if end <= episode.end:
            dollars += job.workers * episode.price(setting.prices, end)
            made += needed - saved
            return Outcome(end, dollars, steps(made), steps(made) * job.workers * job.batch, lost, losses)
        dollars += job.workers * episode.price(setting.prices, episode.end)
        trained, kept = training_within(max(0.0, episode.end - ready), delays)
        made, saved, lost = made + trained, saved + kept, lost + trained - kept
        losses += episode.end < limit
    return Outcome(math.inf, math.inf, steps(made), steps(made) * job.workers * job.batch, lost, losses)
