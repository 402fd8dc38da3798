#!/usr/bin/env python3
"""Makes the data of fit-argon.toml and fit-water.toml: energies, forces and stresses of known parameters, with noise of known
size, as extended XYZ in eV and angstroms, in the form in which ASE writes it.

    python3 fit-data.py

Nothing of the engine is used: energies are formulas, and derivatives are imaginary parts of these at complex places.
"""

import cmath
import math
import random

KJ = 96.48533212331001  # kJ/mol in an eV
KCAL = KJ / 4.184
COULOMB = 1389.3545764438198  # kJ/mol A / e^2
STEP = 1e-30


def sub(a, b):
    return [x - y for x, y in zip(a, b)]


def dot(a, b):
    return sum(x * y for x, y in zip(a, b))


def derivative(energy, places, i, c):
    """dE/dx of one coordinate: no difference is taken, so that none is rounded."""
    moved = [list(r) for r in places]
    moved[i][c] += 1j * STEP
    return energy(moved).imag / STEP


def write(out, lattice, names, places, energy, forces, stress, key):
    comment = []
    if lattice:
        comment.append('Lattice="%s 0.0 0.0 0.0 %s 0.0 0.0 0.0 %s"' % (lattice, lattice, lattice))
    forces_key = "REF_forces" if key else "forces"
    comment.append("Properties=species:S:1:pos:R:3:%s:R:3" % forces_key)
    comment.append("%senergy=%.9f" % ("REF_" if key else "", energy))
    if stress:
        xx, yy, zz, yz, xz, xy = stress
        comment.append('stress="%s"' % " ".join("%.9f" % x for x in (xx, xy, xz, xy, yy, yz, xz, yz, zz)))
    comment.append('pbc="%s"' % ("T T T" if lattice else "F F F"))
    out.write("%d\n%s\n" % (len(names), " ".join(comment)))
    for name, r, f in zip(names, places, forces):
        out.write("%-2s %14.8f %14.8f %14.8f %14.8f %14.8f %14.8f\n" % (name, *r, *f))


def argon():
    """Lennard-Jones, epsilon = 0.996 kJ/mol, sigma = 3.405 A, force-shifted at 8 A."""
    epsilon, sigma, cut = 0.996 / KJ, 3.405, 8.0
    edge, noise = 10.6, (0.0002, 0.003, 0.0002)
    draw = random.Random(1964)
    basis = [(0, 0, 0), (0, 1, 1), (1, 0, 1), (1, 1, 0)]
    cells = [(a, b, c) for a in range(2) for b in range(2) for c in range(2)]
    lattice = [[2.65 * (2 * n + m) for n, m in zip(cell, atom)] for cell in cells for atom in basis]
    images = [(a, b, c) for a in (-1, 0, 1) for b in (-1, 0, 1) for c in (-1, 0, 1)]

    def bare(r2):
        s6 = (sigma * sigma / r2) ** 3
        return 4 * epsilon * (s6 * s6 - s6)

    at_cut = bare(cut * cut)
    slope = bare((cut + 1j * STEP) ** 2).imag / STEP

    with open("argon-forces.xyz", "w") as out:
        for _ in range(20):
            places = [[x + draw.gauss(0, 0.25) for x in r] for r in lattice]
            pairs = []
            for i in range(32):
                for j in range(i + 1):
                    for n in images:
                        shift = [edge * x for x in n]
                        d = [a - b + s for a, b, s in zip(places[i], places[j], shift)]
                        if 0 < dot(d, d) < cut * cut:
                            # an atom and its own image are met from both sides
                            pairs.append((i, j, d, 0.5 if i == j else 1.0))
            energy, forces, stress = 0.0, [[0.0] * 3 for _ in range(32)], [0.0] * 6
            for i, j, d, times in pairs:
                def of(d):
                    r = cmath.sqrt(dot(d, d))
                    return times * (bare(r * r) - at_cut - (r - cut) * slope)

                energy += of(d).real
                gradient = []
                for c in range(3):
                    moved = list(d)
                    moved[c] += 1j * STEP
                    gradient.append(of(moved).imag / STEP)
                for c in range(3):
                    forces[i][c] -= gradient[c]
                    forces[j][c] += gradient[c]
                for k, (a, b) in enumerate([(0, 0), (1, 1), (2, 2), (1, 2), (0, 2), (0, 1)]):
                    stress[k] += gradient[a] * d[b] / edge**3
            energy += draw.gauss(0, noise[0] * 32)
            forces = [[f + draw.gauss(0, noise[1]) for f in row] for row in forces]
            stress = [s + draw.gauss(0, noise[2]) for s in stress]
            write(out, edge, ["Ar"] * 32, places, energy, forces, stress, False)


def water():
    """Flexible SPC/Fw water in clusters without cut-off, whose energies have a zero of their own."""
    k_bond, r0 = 1059.162 / KCAL, 1.012
    k_angle, theta0 = 75.90 / KCAL, math.radians(113.24)
    epsilon, sigma = 0.1554253 / KCAL, 3.165492
    charges, noise, zero = [-0.82, 0.41, 0.41], (0.0003, 0.005), -2078.5
    draw = random.Random(2006)
    with open("water-hexamer.xyz") as file:
        lines = file.read().splitlines()[2:]
    names = [line.split()[0] for line in lines]
    start = [[float(x) for x in line.split()[1:4]] for line in lines]

    def energy(x):
        e = 0
        for o in range(0, 18, 3):
            arms = [sub(x[o + 1], x[o]), sub(x[o + 2], x[o])]
            lengths = [cmath.sqrt(dot(a, a)) for a in arms]
            e += sum(0.5 * k_bond * (r - r0) ** 2 for r in lengths)
            e += 0.5 * k_angle * (cmath.acos(dot(*arms) / (lengths[0] * lengths[1])) - theta0) ** 2
            for p in range(0, o, 3):
                d = sub(x[o], x[p])
                s6 = (sigma * sigma / dot(d, d)) ** 3
                e += 4 * epsilon * (s6 * s6 - s6)
                for a in range(3):
                    for b in range(3):
                        d = sub(x[o + a], x[p + b])
                        e += COULOMB / KJ * charges[a] * charges[b] / cmath.sqrt(dot(d, d))
        return e

    with open("water-forces.xyz", "w") as out:
        for _ in range(25):
            places = []
            for o in range(0, 18, 3):
                whole = [draw.gauss(0, 0.12) for _ in range(3)]
                for a in range(3):
                    places.append([x + w + draw.gauss(0, 0.05) for x, w in zip(start[o + a], whole)])
            forces = [[-derivative(energy, places, i, c) + draw.gauss(0, noise[1]) for c in range(3)] for i in range(18)]
            e = energy(places).real + zero + draw.gauss(0, noise[0] * 18)
            write(out, None, names, places, e, forces, None, True)


argon()
water()
