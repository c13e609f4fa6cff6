//! Tests of the platform from outside, over a store in memory.

mod brokers;
