//! The journal's store in PostgreSQL, MySQL and MariaDB: queries and mapping, no decisions.
