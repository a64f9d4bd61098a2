"""Tables of what was measured for some numbers of workers, as the user gives them.

    {"step_seconds": {"1": 0.17, "8": 0.21}}              seconds of a step
    {"progress_per_sample": {"1": 1.0, "8": 0.97}}        learning by a sample, 1 at some batch

Between two numbers of workers the table goes in a straight line. It says nothing outside of them.
"""

from dataclasses import dataclass

from availability import BadInput, is_number, read_json


@dataclass(frozen=True)
class Table:
    path: str
    points: tuple  # (workers, value), by workers

    def __call__(self, workers):
        (fewest, _), (most, _) = self.points[0], self.points[-1]
        if not fewest <= workers <= most:
            raise BadInput(f"{self.path}: has {fewest} to {most} workers, and {workers} are needed: "
                           "measure them, too, or let the job have others")
        for (left, low), (right, high) in zip(self.points, self.points[1:]):
            if left <= workers < right:
                return low + (high - low) * (workers - left) / (right - left)
        return self.points[-1][1]


def read_table(path, field):
    rows = read_json(path, f"the table {field}").get(field)
    if not isinstance(rows, dict) or not rows:
        raise BadInput(f'{path}: {field} is no table: give {{"{field}": {{"1": VALUE, "8": VALUE}}}}')
    for workers, value in rows.items():
        if not workers.isdecimal() or int(workers) < 1:
            raise BadInput(f"{path}: {field} has the key {workers!r}: give a number of workers, 1 or more")
        if not is_number(value) or value <= 0:
            raise BadInput(f"{path}: {field}[{workers!r}] is {value!r}: give a number above 0")
    return Table(str(path), tuple(sorted((int(workers), value) for workers, value in rows.items())))
