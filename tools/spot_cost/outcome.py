"""The outcome of a run."""

import math
from dataclasses import dataclass


@dataclass(frozen=True)
class Outcome:
    seconds: float  # until the training was complete; infinite if it never was
    dollars: float  # in the same way
    steps: float  # made, also those that were lost
    samples: float = 0.0  # used in these steps
    lost_seconds: float = 0.0  # of training that had to be repeated
    losses: int = 0  # moments at which machines were lost
    joins: int = 0  # moments at which workers joined

    @property
    def complete(self):
        return math.isfinite(self.seconds)
