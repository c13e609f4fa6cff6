//! The brokers that a platform is filled with: their names, and where the stub plays them.

use super::stub_brokers::Behaviour;
use crate::load::BoxError;
use std::time::Duration;
use sutler_platform::brokers::BrokerDefinition;
use sutler_platform::records::ResourceName;

/// Time for one answer: requests that hang do so for a whole measurement.
const ANSWER_WITHIN: Duration = Duration::from_secs(600);
/// Catalogs are not read again during a measurement.
const RARELY: Duration = Duration::from_secs(7 * 24 * 3600);

/// Brokers of one platform.
#[derive(Clone, Debug)]
pub(super) struct BrokerSet {
    /// Port of the stub.
    pub(super) port: u16,
    /// Number of brokers.
    pub(super) count: usize,
    /// Seconds between two polls that the brokers ask for.
    pub(super) poll_seconds: u64,
    /// Behaviour of the last ones; the others answer at once.
    pub(super) last: Vec<Behaviour>,
    /// So many are read again every minute.
    pub(super) read_every_minute: usize,
}

impl BrokerSet {
    /// Brokers that all answer at once.
    pub(super) fn prompt(port: u16, count: usize) -> Self {
        Self {
            port,
            count,
            poll_seconds: 1,
            last: Vec::new(),
            read_every_minute: 0,
        }
    }

    /// Brokers that answer at once; they have the first numbers.
    pub(super) fn prompt_count(&self) -> usize {
        self.count - self.last.len()
    }

    fn behaviour(&self, number: usize) -> Behaviour {
        let place = number.checked_sub(self.prompt_count());
        let behaviour = place.and_then(|place| self.last.get(place));
        behaviour.copied().unwrap_or(Behaviour::Prompt)
    }

    /// What is registered as the broker of a number.
    pub(super) fn definition(&self, number: usize) -> BrokerDefinition {
        let (port, seconds) = (self.port, self.poll_seconds);
        let word = self.behaviour(number).word();
        let mut definition =
            BrokerDefinition::at(format!("http://127.0.0.1:{port}/{word}/{seconds}/{number}"));
        definition.limits.answer_within = ANSWER_WITHIN;
        definition.limits.relist_every = match number < self.read_every_minute {
            true => Duration::from_secs(60),
            false => RARELY,
        };
        definition
    }
}

/// Name of the broker of a number.
pub(super) fn broker_name(number: usize) -> Result<ResourceName, BoxError> {
    Ok(ResourceName::try_from(format!("b{number}"))?)
}
