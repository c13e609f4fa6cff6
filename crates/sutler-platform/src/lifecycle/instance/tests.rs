//! Tests of the rules of instances: against the table, as properties of random histories, and of what a table cannot show.

mod broker_answers;
mod creates_and_deletes;
mod fixtures;
mod histories;
mod lane;
mod meanings;
mod rules;
mod table;
mod uncertain_updates;
mod words;
