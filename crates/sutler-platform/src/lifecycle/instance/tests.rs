//! Tests of the rules of instances: against the table, as properties of random histories, and of what a table cannot show.

mod fixtures;
mod histories;
mod meanings;
mod rules;
mod table;
mod words;
