"""jax-md on the CPU, Lennard-Jones liquid. Usage: jaxmd_run.py START.xyz STEPS 32|64

Threads are as many as the processors that the process is pinned to."""

import os
import sys

os.environ["JAX_PLATFORMS"] = "cpu"
import jax
from common import measure, read_start, report

START, STEPS, PRECISION = sys.argv[1], int(sys.argv[2]), sys.argv[3]
jax.config.update("jax_enable_x64", PRECISION == "64")
# to compile takes far longer than to run: what was compiled once is kept for the next run
jax.config.update("jax_compilation_cache_dir", os.path.join(os.path.dirname(START), "..", "jax-cache"))
jax.config.update("jax_persistent_cache_min_compile_time_secs", 0.0)
jax.config.update("jax_persistent_cache_min_entry_size_bytes", -1)
import jax.numpy as jnp
from jax_md import energy, partition, simulate, space
from importlib.metadata import version

TIME_STEP = 0.005
cell, _, positions, velocities = read_start(START)
dtype = jnp.float64 if PRECISION == "64" else jnp.float32
cell = jnp.array(cell, dtype)
positions = jnp.mod(jnp.array(positions, dtype), cell)
displacement, shift = space.periodic(cell)
# half lists: the faster of its formats. The smooth end of the interaction is the only one that it has.
near, potential = energy.lennard_jones_neighbor_list(
    displacement, cell, sigma=1.0, epsilon=1.0, r_onset=2.3, r_cutoff=2.5, dr_threshold=0.3,
    format=partition.OrderedSparse, capacity_multiplier=1.25)
neighbors = near.allocate(positions)
start = float(potential(positions, neighbor=neighbors)) / len(positions)
begin, step = simulate.nve(potential, shift, TIME_STEP)
state = begin(jax.random.PRNGKey(0), positions, kT=1.0, neighbor=neighbors, mass=1.0)
state = state.set(momentum=jnp.array(velocities, dtype))


def body(_, now):
    state, neighbors = now
    neighbors = neighbors.update(state.position)
    return step(state, neighbor=neighbors), neighbors


@jax.jit
def steps(state, neighbors, count):
    return jax.lax.fori_loop(0, count, body, (state, neighbors))


now = jax.block_until_ready(steps(state, neighbors, 2))  # compiles


def advance(count):
    global now
    now = jax.block_until_ready(steps(*now, count))


times = measure(advance, STEPS)
if bool(now[1].did_buffer_overflow):
    sys.exit("the neighbour list overflowed: its results are worthless")
report(STEPS, times, start, f"jax-md {version('jax-md')}, jax {jax.__version__}")
