//! Tests of the SQLite store from outside: the public suite, then what only a file can suffer.

mod backups;
mod candidate;
mod child;
mod disk_errors;
mod fixture;
mod group_commit;
mod index_backfill;
mod opening;
