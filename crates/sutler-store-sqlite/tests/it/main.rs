//! Tests of the SQLite store from outside: the public suite, then what only a file can suffer.

mod backups;
mod candidate;
mod child;
mod disks;
mod filing;
mod groups;
mod opening;
mod scene;
