#!/usr/bin/env python3
"""Energy and forces of the potential in `potential/` for the atoms of tests/neural.rs, worked out on its own.

Each symmetry function is summed as it stands in J. Behler, J. Chem. Phys. 134, 074106 (2011), with numbers of 60
decimal digits; forces are central differences of the energy with steps of 1e-18. Prints the numbers that
tests/neural.rs expects, in hartree and bohr.
"""

import os
from decimal import Decimal, getcontext

getcontext().prec = 60
D = Decimal
HERE = os.path.join(os.path.dirname(os.path.abspath(__file__)), "potential")
ATOMS = [
    ("O", "0.1", "0.0", "-0.2"),
    ("H", "1.7", "0.4", "0.3"),
    ("H", "-0.6", "1.6", "0.1"),
    ("O", "-1.0", "4.4", "0.9"),
    ("H", "-2.9", "4.1", "1.2"),
    ("H", "0.3", "5.3", "2.1"),
]
NUMBER = {"H": 1, "O": 8}


def rows(name):
    with open(os.path.join(HERE, name)) as file:
        for line in file:
            words = line.split("#")[0].split()
            if words:
                yield words


def cutoff(r, end, inner):
    if r >= end:
        return D(0)
    if r < inner * end:
        return D(1)
    x = (r - inner * end) / (end - inner * end)
    return ((15 - 6 * x) * x - 10) * x**3 + 1


def tanh(x):
    a, b = x.exp(), (-x).exp()
    return (a - b) / (a + b)


def activation(letter, x):
    return {"t": tanh, "s": lambda x: 1 / (1 + (-x).exp()), "l": lambda x: x}[letter](x)


keys = {}
for words in rows("input.nn"):
    keys.setdefault(words[0], []).append(words[1:])
elements = sorted(keys["elements"][0], key=NUMBER.get)
inner = D(keys["cutoff_type"][0][1])
functions = []
for w in keys["symfunction_short"]:
    if w[1] == "2":
        eta, shift, end = map(D, w[3:6])
        functions.append((w[0], 2, end, eta, shift, D(0), D(0), [w[2]]))
    else:
        eta, lam, zeta, end = map(D, w[4:8])
        shift = D(w[8]) if len(w) > 8 else D(0)
        both = sorted(w[2:4], key=NUMBER.get)
        functions.append((w[0], int(w[1]), end, eta, shift, zeta, lam, both))
functions.sort(key=lambda f: (NUMBER[f[0]], *f[1:7], [NUMBER[e] for e in f[7]]))
scaling = {}
for words in [w for w in rows("scaling.data") if len(w) > 2]:
    scaling.setdefault(elements[int(words[0]) - 1], []).append([D(x) for x in words[2:]])
weights = {}
for e in elements:
    for words in rows("weights.%03d.data" % NUMBER[e]):
        if len(words) == 1:
            weights.setdefault(e, []).append(D(words[0]))
        elif words[1] == "a":
            weights.setdefault(e, {})[tuple(map(int, words[3:7]))] = D(words[0])
        else:
            weights.setdefault(e, {})[tuple(map(int, words[3:5]))] = D(words[0])


def distance(a, b):
    return sum((x - y) ** 2 for x, y in zip(a, b)).sqrt()


def value(f, i, atoms):
    _, kind, end, eta, shift, zeta, lam, both = f
    here = atoms[i][1]
    others = [a for k, a in enumerate(atoms) if k != i]

    def u(r):
        return (-eta * (r - shift) ** 2).exp() * cutoff(r, end, inner)

    if kind == 2:
        return sum(u(distance(here, x)) for e, x in others if e == both[0])
    total = D(0)
    for j, (ej, xj) in enumerate(others):
        for ek, xk in others[:j]:
            if sorted([ej, ek], key=NUMBER.get) != both:
                continue
            rj, rk, across = distance(here, xj), distance(here, xk), distance(xj, xk)
            cos = (rj**2 + rk**2 - across**2) / (2 * rj * rk)
            term = 2 ** (1 - zeta) * (1 + lam * cos) ** zeta * u(rj) * u(rk)
            total += term * u(across) if kind == 3 else term
    return total


def energy(atoms):
    low, high = D(keys["scale_min_short"][0][0]), D(keys["scale_max_short"][0][0])
    total = D(0)
    for i, (e, _) in enumerate(atoms):
        own = [f for f in functions if f[0] == e]
        x = []
        for f, (least, most, mean, _) in zip(own, scaling[e]):
            x.append(low + (high - low) * (value(f, i, atoms) - mean) / (most - least))
        nodes = [int(n) for n in keys["global_nodes_short"][0]] + [1]
        for w in keys.get("element_nodes_short", []):
            if w[0] == e:
                nodes[int(w[1]) - 1] = int(w[2])
        at = 0
        for layer, (n, letter) in enumerate(zip(nodes, keys["global_activation_short"][0])):
            given = weights[e]
            out = []
            for k in range(n):
                if isinstance(given, dict):
                    s = given[(layer + 1, k + 1)]
                    s += sum(given[(layer, j + 1, layer + 1, k + 1)] * x[j] for j in range(len(x)))
                else:
                    s = given[at + len(x) * n + k] + sum(given[at + j * n + k] * x[j] for j in range(len(x)))
                out.append(activation(letter, s))
            at += (len(x) + 1) * n
            x = out
        free = {w[0]: D(w[1]) for w in keys["atom_energy"]}
        total += x[0] / D(keys["conv_energy"][0][0]) + D(keys["mean_energy"][0][0]) + free[e]
    return total


atoms = [(a[0], [D(x) for x in a[1:]]) for a in ATOMS]
print("energy", float(energy(atoms)))
h = D("1e-18")
for i in range(len(atoms)):
    force = []
    for c in range(3):
        moved = []
        for sign in (1, -1):
            other = [(e, list(x)) for e, x in atoms]
            other[i][1][c] += sign * h
            moved.append(energy(other))
        force.append((moved[1] - moved[0]) / (2 * h))
    print([float(f) for f in force], end=",\n")
