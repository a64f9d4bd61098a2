"""The page and the pictures, from the rows of the results."""

import statistics

from cells import POLICIES, UNDISTURBED
from chart import Panel, lines
from units import table

ORDER = (*POLICIES, UNDISTURBED)
HEADER = ["policy", "growth: peak, first epoch", "peak, to the shrinking", "lowest accuracy, %",
          "shrinking: peak, first epoch", "peak, to the end", "lowest accuracy, %",
          "final accuracy, %"]
COLUMNS = (("grown_first_peak", 1), ("grown_peak", 1), ("grown_lowest", 100),
           ("shrunk_first_peak", 1), ("shrunk_peak", 1), ("shrunk_lowest", 100), ("final", 100))


def spread(values, factor):
    """Mean and standard deviation over the seeds."""
    values = [factor * value for value in values]
    digits = 1 if factor == 100 else 2
    text = f"{statistics.mean(values):.{digits}f}"
    return text + (f" ± {statistics.stdev(values):.{digits}f}" if len(values) > 1 else "")


def settings(rows):
    return sorted({(row["eta"], row["workers"]) for row in rows if row["workers"] > 1})


def belongs(row, eta, workers):
    """The undisturbed run has one worker and is compared with all."""
    return row["eta"] == eta and row["workers"] in (1, workers)


def simulated(rows, eta, workers):
    """policy: its rows."""
    found = {}
    for policy in ORDER:
        of_it = [row for row in rows if row["job"] == "simulated" and row["policy"] == policy
                 and belongs(row, eta, workers)]
        if of_it:
            found[policy] = of_it
    return found


def setting_table(rows, eta, workers):
    return table(HEADER, [
        [f"`{policy}`" if policy in POLICIES else policy]
        + [spread([row[name] for row in of_it], factor) for name, factor in COLUMNS]
        for policy, of_it in simulated(rows, eta, workers).items()])


def bits(row):
    if not row["same_plan"]:
        return "**other steps**"
    return "all" if row["equal_steps"] == row["steps"] else f"first {row['equal_steps']}"


def real_table(rows):
    """Real jobs beside the same cell in one process."""
    alone = {(row["eta"], row["workers"], row["policy"], row["seed"]): row for row in rows
             if row["job"] == "simulated"}
    lines_of = []
    for row in rows:
        if row["job"] == "simulated":
            continue
        other = alone[row["eta"], row["workers"], row["policy"], row["seed"]]
        lines_of.append(
            [f"`{row['policy']}`", f"{row['eta']:g}", str(row["workers"]), f"`{row['job']}`",
             str(row["steps"]), bits(row), f"{row.get('largest_difference', float('nan')):.2g}",
             f"{row['grown_peak']:.4f}", f"{other['grown_peak']:.4f}",
             f"{100 * row['final']:.1f}", f"{100 * other['final']:.1f}"])
    return table(["policy", "eta", "k", "allreduce", "steps", "losses of equal bits",
                  "largest difference", "peak, real", "peak, one process", "final, real, %",
                  "final, one process, %"], lines_of)


def picture(curves, eta, workers, plan):
    """Both changes, each with the epoch before it."""
    def panel(title, first, last):
        return Panel(f"{title}, k = {workers}", "nats", {
            one["policy"]: [point for point in one["points"] if first <= point[0] < last]
            for one in curves if belongs(one, eta, workers)},
            linear=True, across="epoch")

    return lines(f"Held-out loss, eta {eta:g}",
                 [panel("Growth", plan.grow_at - 1, min(plan.grow_at + 4, plan.shrink_at)),
                  panel("Shrinking", plan.shrink_at - 1, min(plan.shrink_at + 4, plan.epochs))])


def picture_name(eta, workers):
    return f"eta-{eta:g}-k-{workers}.svg"


def section(rows, eta, workers, folder):
    before = [row["grown_before"] for row in rows if belongs(row, eta, 1)]
    return (f"## eta {eta:g}, k = {workers}\n\nAccuracy in the epoch before the growth: "
            f"{spread(before, 100)} %.\n\n{setting_table(rows, eta, workers)}\n"
            f"![Held-out loss per policy]({folder}/{picture_name(eta, workers)})\n")


def page(template, result, rows, folder):
    sections = "\n".join(section(rows, *setting, folder) for setting in settings(rows))
    return (template.replace("{{how}}\n", result["how"] + "\n")
            .replace("{{sections}}\n", sections + "\n").replace("{{real}}\n", real_table(rows)))
