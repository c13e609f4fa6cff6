//! Tests of the scheduler and of periodic tasks.
