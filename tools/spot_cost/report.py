"""The tables that are printed, in Markdown."""

import math
from statistics import mean

from comparison import QUANTILES, STRATEGIES, quantile
from setting import HOUR


def table(header, rows):
    lines = ["| " + " | ".join(header) + " |", "| --- |" + " --: |" * (len(header) - 1)]
    return "\n".join(lines + ["| " + " | ".join(row) + " |" for row in rows])


def number(value, digits=1):
    return f"{value:,.{digits}f}" if math.isfinite(value) else "never"


def percent(value):
    return f"{100 * value:.0f} %" if math.isfinite(value) else "never"


def range_of(values, digits=1):
    return " / ".join(number(quantile(values, share), digits) for share in QUANTILES)


def row(name, runs, base):
    dollars, seconds = [one.dollars for one in runs], [one.seconds for one in runs]
    return [name, range_of([one / HOUR for one in seconds]), percent(quantile(seconds, 0.5) / base.seconds),
            range_of(dollars, 0), percent(quantile(dollars, 0.5) / base.dollars),
            percent(sum(one.complete for one in runs) / len(runs)), number(mean(one.losses for one in runs)),
            number(mean(one.lost_seconds for one in runs) / HOUR)]


def comparison_table(results):
    base = results["on demand"][0]
    return table(["strategy", "hours: p10 / p50 / p90", "p50 : on demand", "dollars: p10 / p50 / p90",
                  "p50 : on demand", "complete", "losses of machines", "hours repeated"],
                 [row(name, results[name], base) for name in STRATEGIES])


def sensitivity_table(rows):
    header = ["discount, boot"]
    for name in STRATEGIES[1:]:
        header += [f"{name}: dollars", "hours"]
    lines = []
    for discount, boot, by_strategy in rows:
        line = [f"{percent(discount)}, {boot:g} s"]
        for name in STRATEGIES[1:]:
            hours, dollars = by_strategy[name]
            line += [percent(dollars), percent(hours)]
        lines.append(line)
    return table(header, lines)


def availability_line(trace, workers):
    enough = mean(at >= workers for at in trace.capacities)
    some = mean(at > 0 for at in trace.capacities)
    return (f"{trace.seconds / 86400:.1f} days, a point every {trace.gap:g} s; machines: "
            f"mean {mean(trace.capacities):.1f}, most {max(trace.capacities)}, any {percent(some)} of the time, "
            f"at least {workers} {percent(enough)}")


def replay_table(predicted, counted):
    """And the largest difference of steps and samples, as a share of what was counted."""
    rows, largest = [], 0.0
    for name in ("steps", "samples"):
        expected, real = getattr(predicted, name), getattr(counted, name)
        difference = abs(expected - real) / real
        largest = max(largest, difference)
        rows.append([name, number(expected, 0), number(real, 0), f"{100 * difference:.1f} %"])
    for name in ("joins", "losses"):
        rows.append([f"{name}, moments", str(getattr(predicted, name)), str(getattr(counted, name)), ""])
    return table([f"in {counted.seconds:g} s", "predicted", "counted", "difference"], rows), largest
