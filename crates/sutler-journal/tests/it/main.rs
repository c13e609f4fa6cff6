//! Tests of the journal from outside: the memory store against the public suite, copies, and the engine.

mod copy;
mod engine;
mod inspect;
mod memory;
