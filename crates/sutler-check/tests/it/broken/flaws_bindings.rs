//! Flaws of bindings that only change an answer on its way out; the others are in the decisions
//! themselves.

use super::Flaws;
use super::answers::Answer;
use super::ask::Ask;

/// Spoils an answer.
pub(crate) fn bend(_flaws: &Flaws, _ask: &Ask, _answer: &mut Answer) {}
