//! Tests of the journal from outside: the memory store against the public suite.

mod memory;
