"""Setting of a run: the job, delays, prices, and how fast it steps and learns.

Each default says where it comes from. "Guess" means that it was not measured: set it.
"""

from collections.abc import Callable
from dataclasses import dataclass, field

HOUR = 3600.0


@dataclass(frozen=True)
class Job:
    """Each machine has one worker. The defaults are ResNet-50 on ImageNet, 90 epochs."""
    samples: float = 90 * 1_281_167
    batch: int = 64  # samples of a worker in a step
    workers: int = 16  # of the jobs with a fixed number
    most: int = 16  # of the elastic job
    base: int = 1  # workers of the elastic job that are on demand


@dataclass(frozen=True)
class Delays:
    """In seconds."""
    boot: float = 120.0  # guess: from the request to a system that runs
    prepare: float = 180.0  # guess: image, packages and data; paid for, as booting is
    join: float = 0.332  # docs/performance.md, join: from the start of the program to its first step
    join_pause: float = 0.122  # docs/performance.md, join: gap of the members, 256 MiB of state
    recovery: float = 0.009  # docs/performance.md, recovery: sigkill, p50
    restart: float = 30.0  # guess: a job with a fixed number starts, and reads its checkpoint
    checkpoint_every: float = 900.0  # guess: time of training from one checkpoint to the next
    checkpoint_write: float = 5.0  # guess: the training waits meanwhile

    @property
    def start(self):
        """From the request for a machine until its worker can start."""
        return self.boot + self.prepare


@dataclass(frozen=True)
class Prices:
    """In dollars per hour of a machine."""
    on_demand: float = 3.06  # p3.2xlarge, list price
    discount: float | None = 0.7  # of spot machines; None: the trace has prices. 0.918 in SkyPilot's traces
    server: float = 0.0  # of the rendezvous server; 0: it is on a base worker's machine

    def spot(self, segment):
        if self.discount is None:
            return segment.price
        return self.on_demand * (1 - self.discount)


@dataclass(frozen=True)
class RingModel:
    """Seconds of a step: computing, and then an allreduce in a ring, none of which is hidden."""
    compute: float = 0.17  # docs/benchmarking.md: a V100, 64 images, float32
    gradient_bytes: float = 102.2e6  # ResNet-50: 25.56 million parameters of 4 bytes
    bandwidth: float = 1.25e9  # bytes per second: 10 Gbit/s; docs/performance.md: 99 % of a line is reached

    def __call__(self, workers):
        return self.compute + 2 * (workers - 1) / workers * self.gradient_bytes / self.bandwidth


def by_samples(workers):
    """A sample teaches as much in a large batch as in a small one."""
    del workers
    return 1.0


@dataclass(frozen=True)
class Setting:
    job: Job = field(default_factory=Job)
    delays: Delays = field(default_factory=Delays)
    prices: Prices = field(default_factory=Prices)
    step_seconds: Callable[[int], float] = field(default_factory=RingModel)
    progress: Callable[[int], float] = by_samples  # learning by a sample, by number of workers

    def relative_progress(self, workers):
        """By a sample, compared with the fixed job: its samples are what the training takes."""
        return self.progress(workers) / self.progress(self.job.workers)

    def learning_rate(self, workers):
        """Samples per second, each worth as much as one of the fixed job."""
        samples = workers * self.job.batch / self.step_seconds(workers)
        return samples * self.relative_progress(workers)
