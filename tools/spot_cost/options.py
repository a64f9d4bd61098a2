"""The command line of spot_cost."""

import argparse
import math
import pathlib

from setting import Delays, Job, Prices, RingModel

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
JOB, DELAYS, PRICES, RING = Job(), Delays(), Prices(), RingModel()


def above(least, kind=float, inclusive=True):
    """A number for argparse."""
    def parse(text):
        value = kind(text)
        if not (value >= least if inclusive else value > least) or value == math.inf:
            raise ValueError
        return value
    parse.__name__ = f"number {'of at least' if inclusive else 'above'} {least:g}"
    return parse


POSITIVE, NOT_NEGATIVE = above(0, inclusive=False), above(0)
COUNT = above(1, int)


def share(text):
    value = float(text)
    if not 0 <= value < 1:
        raise ValueError
    return value


share.__name__ = "share from 0 to less than 1"


def add_trace(parser):
    parser.add_argument("trace", type=pathlib.Path, help="a file of SkyPilot's spot traces, or like them")
    parser.add_argument("--ones", choices=("available", "preempted"), default="available",
                        help="what 1 means in a trace of one machine; SkyPilot's simulator takes it for "
                             "preempted, its published traces for available [available]")


def add_job(parser):
    add = parser.add_argument_group("job, one worker per machine").add_argument
    add("--samples", type=POSITIVE, default=JOB.samples, help="to train [90 epochs of ImageNet]")
    add("--batch", type=COUNT, default=JOB.batch, help=f"samples of a worker in a step [{JOB.batch}]")
    add("--workers", type=COUNT, default=JOB.workers, help=f"of the fixed jobs [{JOB.workers}]")
    add("--most", type=COUNT, default=None, help="workers of the elastic job at most [--workers]")
    add("--base", type=above(0, int), default=JOB.base,
        help=f"workers of the elastic job on demand; 0: it writes checkpoints [{JOB.base}]")
    add("--progress", type=pathlib.Path, metavar="FILE",
        help='learning by a sample: {"progress_per_sample": {"1": 1.0, "8": 0.9}} [1 for all]')


def add_throughput(parser):
    add = parser.add_argument_group("time of a step").add_argument
    add("--steps", type=pathlib.Path, metavar="FILE",
        help='measured: {"step_seconds": {"1": 0.17, "8": 0.2}}; without it, computing and a ring')
    add("--compute", type=POSITIVE, default=RING.compute, help=f"seconds [{RING.compute}]")
    add("--gradient-bytes", type=NOT_NEGATIVE, default=RING.gradient_bytes,
        help=f"[{RING.gradient_bytes:g}]")
    add("--bandwidth", type=POSITIVE, default=RING.bandwidth,
        help=f"of a machine, bytes per second [{RING.bandwidth:g}]")


# Option of each delay: its meaning.
LIVE_DELAYS = {"boot": "from the request for a machine to a system that runs; a guess",
               "prepare": "image, packages, data; a guess",
               "join": "from the start of a worker to its first step",
               "join-pause": "of the members, per join",
               "recovery": "pause of the members, per loss"}
CHECKPOINT_DELAYS = {"restart": "of a job from its checkpoint; a guess",
                     "checkpoint-every": "of training; a guess",
                     "checkpoint-write": "for which the training waits; a guess"}


def add_delays(parser, meanings):
    add = parser.add_argument_group("delays, in seconds").add_argument
    for name, meaning in meanings.items():
        default = getattr(DELAYS, name.replace("-", "_"))
        kind = POSITIVE if name == "checkpoint-every" else NOT_NEGATIVE
        add(f"--{name}", type=kind, default=default, help=f"{meaning} [{default:g}]")


def add_prices(parser):
    add = parser.add_argument_group("prices, in dollars per hour of a machine").add_argument
    add("--on-demand", type=POSITIVE, default=PRICES.on_demand, help=f"[{PRICES.on_demand}]")
    add("--server", type=NOT_NEGATIVE, default=PRICES.server,
        help="rendezvous server of the elastic job, if it has a machine of its own [0]")


def add_unchanged(parser):
    """Discount and delays of compare."""
    parser.add_argument("--discount", type=share, default=None,
                        help=f"of spot machines [the prices of the trace, or {PRICES.discount}]")
    add_delays(parser, LIVE_DELAYS | CHECKPOINT_DELAYS)


def add_changed(parser):
    """Those of sensitivity, which tries several discounts and boot times."""
    discounts, boots = [0.3, 0.5, 0.7, 0.9], [60, 120, 600]
    parser.add_argument("--discounts", type=share, nargs="+", default=discounts, help=f"{discounts}")
    parser.add_argument("--boots", type=NOT_NEGATIVE, nargs="+", default=boots, help=f"seconds {boots}")
    parser.set_defaults(discount=None)
    meanings = LIVE_DELAYS | CHECKPOINT_DELAYS
    add_delays(parser, {name: meanings[name] for name in meanings if name != "boot"})


def add_runs(parser):
    add = parser.add_argument_group("runs").add_argument
    add("--runs", type=COUNT, default=100, help="start times [100]")
    add("--seed", type=int, default=1, help="of the start times [1]")
    add("--limit-hours", type=POSITIVE, default=720, help="a run that takes longer is not complete [720]")


def add_bin(parser):
    parser.add_argument("--bin", type=pathlib.Path, default=ROOT / "build" / "bin",
                        help="folder with the programs [build/bin]")


def add_replay(parser):
    add_trace(parser)
    add_delays(parser, LIVE_DELAYS)
    parser.add_argument("--compress", type=POSITIVE, required=True,
                        help="seconds of the trace, of boot and of prepare in a second of the replay")
    parser.add_argument("--seconds", type=POSITIVE, help="of the replay [the whole trace]")
    parser.add_argument("--most", type=above(2, int), default=4,
                        help="workers at most, with that of the base [4]")
    parser.add_argument("--step-ms", type=COUNT, default=50, help="time of a step, mostly sleep [50]")
    parser.add_argument("--tolerance", type=POSITIVE, default=0.1, help="allowed difference [0.1]")
    add_bin(parser)


def arguments(description):
    """`description` is that of the program."""
    summary, text = description.split("\n", 1)
    parser = argparse.ArgumentParser(prog="spot_cost", description=summary, epilog=text,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    verbs = parser.add_subparsers(dest="verb", required=True, metavar="VERB")
    for verb in ("compare", "sensitivity"):
        one = verbs.add_parser(verb)
        for add in (add_trace, add_job, add_throughput, add_prices, add_runs):
            add(one)
        (add_changed if verb == "sensitivity" else add_unchanged)(one)
    add_replay(verbs.add_parser("replay"))
    one = verbs.add_parser("progress")
    one.add_argument("file", type=pathlib.Path, help="to write, for --progress")
    one.add_argument("--seeds", type=COUNT, default=25, help="trainings per number of workers [25]")
    add_bin(one)
    one = verbs.add_parser("synthesize")
    one.add_argument("file", type=pathlib.Path, help="to write")
    one.add_argument("--seed", type=int, default=1)
    one.add_argument("--days", type=POSITIVE, default=14)
    one.add_argument("--machines", type=COUNT, default=16, help="at most [16]")
    one.add_argument("--gap", type=POSITIVE, default=300, help="seconds between two points [300]")
    return parser.parse_args()
