//! Tests of the rules of bindings: against the table, as properties of random histories, and of what a table cannot show.

mod answers;
mod broker;
mod broker_answers;
mod credential_paths;
mod documents;
mod due;
mod fixtures;
mod histories;
mod rules;
mod states;
mod steps;
mod table;
mod transforms;
mod unknown_outcomes;
mod words;
mod world;
