//! The journal's store in MongoDB replica sets: queries and mapping, no decisions.
