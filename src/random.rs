//! Random numbers that depend on what they are for, never on who asks first.
