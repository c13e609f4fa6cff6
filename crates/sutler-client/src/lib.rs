//! The platform's half of the Open Service Broker API: requests out, answers in, and what each
//! answer means.
//!
//! `wire` carries raw requests and answers, bounded in time and size, and knows nothing of the
//! protocol's bodies: `sutler-check` judges brokers through it. It is not a retry loop: what to do
//! about an answer is for whoever asked.

pub mod wire;
