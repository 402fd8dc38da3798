"""OpenMM's CPU platform. Usage: openmm_run.py lj|water START.xyz THREADS STEPS"""

import math
import sys

import openmm
from common import measure, read_start, report

KCAL = 4.184
WARM = 20  # steps before the clock starts


def liquid(cell, names, positions, velocities):
    """Lennard-Jones, with numbers of argon as the units: OpenMM has no reduced ones."""
    sigma, epsilon, mass = 0.34, 0.9977, 39.948
    tau = sigma * math.sqrt(mass / epsilon)
    system = openmm.System()
    force = nonbonded(2.5 * sigma)
    for _ in names:
        system.addParticle(mass)
        force.addParticle(0.0, sigma, epsilon)
    system.addForce(force)
    scale = lambda rows, by: [[x * by for x in row] for row in rows]
    return system, [x * sigma for x in cell], scale(positions, sigma), scale(velocities, sigma / tau), 0.005 * tau, epsilon


def water(cell, names, positions, velocities):
    """SPC/Fw with a switched Lennard-Jones and a conducting reaction field."""
    system = openmm.System()
    force = nonbonded(0.9)
    force.setReactionFieldDielectric(1e9)
    force.setUseSwitchingFunction(True)
    force.setSwitchingDistance(0.81)
    bonds, angles = openmm.HarmonicBondForce(), openmm.HarmonicAngleForce()
    stiffness = 1059.162 * KCAL * 100
    for i in range(0, len(names), 3):
        for mass, charge, epsilon in ((15.9994, -0.82, 0.1554253 * KCAL), (1.008, 0.41, 0.0), (1.008, 0.41, 0.0)):
            system.addParticle(mass)
            force.addParticle(charge, 0.3165492, epsilon)
        for a, b in ((i, i + 1), (i, i + 2), (i + 1, i + 2)):
            force.addException(a, b, 0.0, 0.1, 0.0)
        bonds.addBond(i, i + 1, 0.1012, stiffness)
        bonds.addBond(i, i + 2, 0.1012, stiffness)
        angles.addAngle(i + 1, i, i + 2, math.radians(113.24), 75.90 * KCAL)
    for part in (bonds, angles):  # molecules may lie across the faces of the cell
        part.setUsesPeriodicBoundaryConditions(True)
    for part in (force, bonds, angles):
        system.addForce(part)
    scale = lambda rows: [[0.1 * x for x in row] for row in rows]
    return system, [0.1 * x for x in cell], scale(positions), scale(velocities), 0.0005, 1.0


def nonbonded(cutoff):
    force = openmm.NonbondedForce()
    force.setNonbondedMethod(openmm.NonbondedForce.CutoffPeriodic)
    force.setCutoffDistance(cutoff)
    force.setUseDispersionCorrection(False)
    return force


def main():
    kind, start, threads, steps = sys.argv[1], sys.argv[2], sys.argv[3], int(sys.argv[4])
    build = {"lj": liquid, "water": water}[kind]
    system, cell, positions, velocities, step, unit = build(*read_start(start))
    system.setDefaultPeriodicBoxVectors((cell[0], 0, 0), (0, cell[1], 0), (0, 0, cell[2]))
    platform = openmm.Platform.getPlatformByName("CPU")
    integrator = openmm.VerletIntegrator(step)
    context = openmm.Context(system, integrator, platform, {"Threads": threads})
    context.setPositions([openmm.Vec3(*row) for row in positions])
    context.setVelocities([openmm.Vec3(*row) for row in velocities])
    energy = context.getState(getEnergy=True).getPotentialEnergy()._value / unit / len(positions)
    integrator.step(WARM)

    def advance(steps):
        integrator.step(steps)
        context.getState(getEnergy=True)  # waits for the last step

    report(steps, measure(advance, steps), energy, openmm.version.short_version)


main()
