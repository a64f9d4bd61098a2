"""What can go wrong: each fault is a method that does it and says so, or None where it cannot be."""

import collections
import heapq
import os
import socket
import subprocess
import sys
import threading
import time

MOST_WORKERS = 8
FEWEST_WORKERS = 2
RUBBISH = (b"GET / HTTP/1.1\r\nHost: localhost\r\n\r\n", b"\xff" * 64, b"[" * 100000,
           b"\x00\x00\x00\x00", b"\x7f\xff\xff\xff{}")


class Faults:
    # How often each comes, by weight.
    WEIGHTS = {"sigkill": 6, "sigkill two": 2, "short stop": 4, "long stop": 3, "join": 6,
               "remove": 2, "server restart": 2, "rubbish": 3, "busy": 1}

    def __init__(self, job, record, random):
        self.job = job
        self.record = record
        self.random = random
        self.done = collections.Counter()
        self.removals = 0  # that were accepted and have not been seen to happen
        self.later = []  # (time, number, what to do then), a heap
        self.numbers = 0
        self.spinning = []

    def after(self, seconds, action):
        self.numbers += 1
        heapq.heappush(self.later, (time.monotonic() + seconds, self.numbers, action))

    def run_due(self):
        while self.later and self.later[0][0] <= time.monotonic():
            heapq.heappop(self.later)[2]()

    def pending(self):
        return bool(self.later)

    def strike(self):
        kind = self.random.choices(list(self.WEIGHTS), self.WEIGHTS.values())[0]
        if len(self.job.live()) < FEWEST_WORKERS + 1:
            kind = "join"
        what = getattr(self, kind.replace(" ", "_"))()
        if what:
            self.done[kind] += 1
        return what and f"{kind}: {what}"

    def victims(self, count):
        """Workers that hold the state, none where losing so many would leave no holder."""
        holders = [worker for worker in self.job.live()
                   if worker.stopped_at is None and not worker.killed
                   and self.record.holds_state(worker)]
        if len(holders) - count - self.removals < 1:
            return []
        return self.random.sample(holders, count)

    def sigkill(self, count=1):
        victims = self.victims(count)
        if not victims:
            return None
        # Without the server the view cannot change; that wait says nothing about recovery.
        if self.job.server_steady():
            self.record.expect_recovery(time.monotonic_ns())
        for victim in victims:
            victim.kill()
        return ", ".join(victim.name for victim in victims)

    def sigkill_two(self):
        return self.sigkill(2)

    def short_stop(self):
        return self.stop(0.2)

    def long_stop(self):
        return self.stop(self.random.uniform(1, 3))

    def stop(self, seconds):
        victims = self.victims(1)
        if not victims:
            return None
        victims[0].stop()
        self.after(seconds, victims[0].go_on)
        return f"{victims[0].name} for {seconds:.1f} s"

    def join(self):
        room = MOST_WORKERS - len(self.job.live())
        if room < 1:
            return None
        count = self.random.randint(1, min(2, room))
        return ", ".join(self.job.start_worker().name for _ in range(count))

    def remove(self):
        members = len(self.victims(1)) and len(self.job.live())
        if members < 3 or self.job.server is None:
            return None
        rank = self.random.randrange(members - 1)
        if self.job.control("remove", str(rank)) is None:
            return None
        self.removals += 1
        return f"rank {rank}"

    def server_restart(self):
        if self.job.server is None:
            return None
        down = self.random.choice((0, 0.3, 1, 2))
        self.job.kill_server()
        self.after(down, self.job.start_server)
        return f"away for {down} s"

    def rubbish(self):
        ports = self.job.listening_ports()
        if not ports:
            return None
        chosen = [(self.random.choice(ports),
                   self.random.choice((*RUBBISH, self.random.randbytes(self.random.randint(1, 4096)))))
                  for _ in range(20)]
        threading.Thread(target=send_rubbish, args=(chosen,), daemon=True).start()
        return f"{len(chosen)} connections to {len(ports)} ports"

    def busy(self):
        if self.spinning:
            return None
        seconds = self.random.uniform(1, 4)
        count = 2 * (os.cpu_count() or 1)
        self.spinning = [subprocess.Popen([sys.executable, "-c", "while True: pass"])
                         for _ in range(count)]
        self.after(seconds, self.calm)
        return f"{count} spinning processes for {seconds:.1f} s"

    def calm(self):
        for process in self.spinning:
            process.kill()
            process.wait()
        self.spinning = []


def send_rubbish(chosen):
    for port, content in chosen:
        try:
            with socket.create_connection(("127.0.0.1", port), timeout=2) as connection:
                connection.sendall(content)
                connection.recv(64)
        except OSError:
            pass  # dropped: as it should be
