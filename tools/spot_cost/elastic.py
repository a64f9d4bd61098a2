"""A job of elastic: base workers on demand, and as many spot machines as can be had, up to the most.

Events are the points of the trace, machines whose worker joins, ends of pauses, and checkpoints. Between
two of them nothing changes, so time, money and learning grow in straight lines.

- A spot machine is asked for as soon as it can be had, and paid for from then on. Its worker joins after
  boot, prepare and join; the members pause for join_pause.
- When machines are taken, the oldest go first, so members rather than machines that boot. The members
  pause for recovery, and lose no step.
- A job without base workers writes checkpoints. When it has lost all members, it begins again from the
  last one.
"""

import math
from typing import NamedTuple

from outcome import Outcome
from setting import HOUR

ROUNDING = 1e-6  # seconds


class Checkpoint(NamedTuple):
    whole_at: float  # when it is written
    learned: float
    trained: float


class ElasticRun:
    """One run. `base_start` is the time until the base workers train."""

    def __init__(self, setting, base_start):
        self.setting = setting
        self.base_start = base_start
        self.now = 0.0
        self.joining = []  # of each spot machine, oldest first: when its worker joins
        self.members = 0
        self.paused_until = 0.0
        self.learned = 0.0  # samples, as of the fixed job
        self.trained = 0.0  # seconds of training, without those that were lost
        self.checkpoints = [Checkpoint(0.0, 0.0, 0.0)]  # the first is none: the job begins anew
        self.dollars = self.steps = self.samples = self.lost_seconds = 0.0
        self.losses = self.joins = 0

    # --- changes of the membership ---

    def pause(self, seconds):
        self.paused_until = max(self.paused_until, self.now) + seconds

    def member_count(self):
        base = self.setting.job.base if self.now >= self.base_start else 0
        return base + sum(at <= self.now for at in self.joining)

    def take_capacity(self, capacity):
        """The zone has so many machines from now on."""
        job, delays = self.setting.job, self.setting.delays
        wanted = min(capacity, job.most - job.base)
        taken = max(0, len(self.joining) - wanted)
        lost_members = sum(at < self.now for at in self.joining[:taken])
        self.joining = self.joining[taken:]
        self.joining += [self.now + delays.start + delays.join] * (wanted - len(self.joining))
        if lost_members:
            self.lose(lost_members)

    def lose(self, count):
        self.losses += 1
        self.members -= count
        if self.members:
            self.pause(self.setting.delays.recovery)
        else:
            self.lose_state()

    def lose_state(self):
        self.checkpoints = [one for one in self.checkpoints if one.whole_at <= self.now]
        last = self.checkpoints[-1]
        self.lost_seconds += self.trained - last.trained
        self.learned, self.trained = last.learned, last.trained

    def admit(self):
        """Workers that are ready to join are members from now on."""
        count = self.member_count()
        if count > self.members:
            if self.members:
                self.joins += 1
                self.pause(self.setting.delays.join_pause)
            elif self.checkpoints[-1].learned:
                self.pause(self.setting.delays.restart)
        self.members = count

    # --- time ---

    def checkpoint_due(self):
        """Seconds of training until the next one."""
        if self.setting.job.base:
            return math.inf
        return self.setting.delays.checkpoint_every - (self.trained - self.checkpoints[-1].trained)

    def next_event(self, end, goal):
        """The next moment at which something changes, and whether the members train until then."""
        times = [end, *(at for at in [self.base_start, *self.joining] if at > self.now)]
        if not self.members:
            return min(times), False
        if self.paused_until > self.now:
            return min(*times, self.paused_until), False
        training = (goal - self.learned) / self.setting.learning_rate(self.members)
        return min(*times, self.now + min(training, self.checkpoint_due())), True

    def pay(self, seconds, segment):
        job, prices = self.setting.job, self.setting.prices
        rate = job.base * prices.on_demand + len(self.joining) * prices.spot(segment) + prices.server
        self.dollars += rate * seconds / HOUR

    def train(self, seconds):
        setting = self.setting
        steps = seconds / setting.step_seconds(self.members)
        self.steps += steps
        self.samples += steps * self.members * setting.job.batch
        self.learned += seconds * setting.learning_rate(self.members)
        self.trained += seconds

    def write_checkpoint(self):
        self.pause(self.setting.delays.checkpoint_write)
        self.checkpoints.append(Checkpoint(self.paused_until, self.learned, self.trained))

    def pass_segment(self, segment, goal):
        """Returns whether the training is complete."""
        self.take_capacity(segment.capacity)
        while self.now < segment.end:
            self.admit()
            then, trains = self.next_event(segment.end, goal)
            self.pay(then - self.now, segment)
            if trains:
                self.train(then - self.now)
            self.now = then
            if self.learned >= goal * (1 - 1e-12):
                return True
            if self.checkpoint_due() <= ROUNDING:
                self.write_checkpoint()
        return False

    def outcome(self, complete):
        return Outcome(self.now if complete else math.inf, self.dollars if complete else math.inf,
                       self.steps, self.samples, self.lost_seconds, self.losses, self.joins)


def elastic(setting, trace, start, limit):
    run = ElasticRun(setting, setting.delays.start)
    complete = any(run.pass_segment(segment, setting.job.samples)
                   for segment in trace.segments(start, limit))
    return run.outcome(complete)


def elastic_for(setting, trace, seconds):
    """The outcome of so many seconds, in a job whose base workers train already."""
    run = ElasticRun(setting, 0.0)
    for segment in trace.segments(0.0, seconds):
        run.pass_segment(segment, math.inf)
    return run.outcome(True)
