//! Tests of the SQLite store from outside: the public suite, then what only a file can suffer.

mod candidate;
