//! Tests of the SQLite store from outside: the conformance suite, then faults of files and processes.

mod backups;
mod child;
mod conformance;
mod disk_errors;
mod fixture;
mod group_commit;
mod index_backfill;
mod leases;
mod opening;
