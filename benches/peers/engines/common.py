"""What the scripts of the engines share: reading the start, and saying how long the steps took."""

import json
import time


def read_start(path):
    """Edges of the cell, names, positions and velocities of an extended XYZ file as `md` writes it."""
    with open(path) as file:
        count = int(file.readline())
        header = file.readline()
        lattice = [float(x) for x in header.split('Lattice="')[1].split('"')[0].split()]
        rows = [file.readline().split() for _ in range(count)]
    names = [row[0] for row in rows]
    positions = [[float(x) for x in row[1:4]] for row in rows]
    velocities = [[float(x) for x in row[4:7]] for row in rows]
    return [lattice[0], lattice[4], lattice[8]], names, positions, velocities


def measure(advance, steps):
    """Seconds that `advance(steps)` takes, on the wall and on the processors."""
    wall, cpu = time.perf_counter(), time.process_time()
    advance(steps)
    return time.perf_counter() - wall, time.process_time() - cpu


def report(steps, times, energy, version, **more):
    """The one line of JSON that `run` reads; the energy is that of the start."""
    print(json.dumps({"steps": steps, "loop": times[0], "cpu": times[1], "energy": energy, "version": version, **more}))
