//! Tests of the journal from outside: the memory store against the public suite, and the engine.

mod engine;
mod memory;
