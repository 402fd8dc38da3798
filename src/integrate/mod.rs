//! Integrators, thermostats, initial velocities and minimisers.
