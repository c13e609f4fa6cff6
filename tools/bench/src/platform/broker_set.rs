//! The brokers that a platform is filled with: their names, and where the stub plays them.

use super::stub_brokers::Behaviour;
use crate::load::BoxError;
use clap::Args;
use std::time::Duration;
use sutler_platform::brokers::BrokerDefinition;
use sutler_platform::records::ResourceName;

/// Time for one answer: requests that hang do so for a whole measurement.
const ANSWER_WITHIN: Duration = Duration::from_secs(600);
/// Catalogs are not read again during a measurement.
const RARELY: Duration = Duration::from_secs(7 * 24 * 3600);

/// The last brokers of a set with bad ones.
const BAD: [Behaviour; 3] = [Behaviour::Hanging, Behaviour::Dripping, Behaviour::Refusing];

/// Brokers of one platform.
#[derive(Args, Clone, Debug)]
pub(super) struct BrokerSet {
    /// Port of the stub
    #[arg(long)]
    pub(super) port: u16,
    /// Number of brokers
    #[arg(long)]
    pub(super) count: usize,
    /// Seconds between two polls that the brokers ask for
    #[arg(long)]
    pub(super) poll_seconds: u64,
    /// The last ones hang, drip and refuse; the others answer at once
    #[arg(long)]
    pub(super) with_bad: bool,
    /// So many are read again every minute
    #[arg(long)]
    pub(super) read_every_minute: usize,
}

impl BrokerSet {
    /// Brokers that all answer at once.
    pub(super) fn prompt(port: u16, count: usize) -> Self {
        Self {
            port,
            count,
            poll_seconds: 1,
            with_bad: false,
            read_every_minute: 0,
        }
    }

    /// Brokers that answer at once; they have the first numbers.
    pub(super) fn prompt_count(&self) -> usize {
        match self.with_bad {
            true => self.count.saturating_sub(BAD.len()),
            false => self.count,
        }
    }

    /// As arguments of a process.
    pub(super) fn arguments(&self) -> Vec<String> {
        let named = [
            ("--port", self.port.to_string()),
            ("--count", self.count.to_string()),
            ("--poll-seconds", self.poll_seconds.to_string()),
            ("--read-every-minute", self.read_every_minute.to_string()),
        ];
        let named = named.into_iter();
        let flag = self.with_bad.then(|| "--with-bad".to_owned());
        named
            .flat_map(|(name, value)| [name.to_owned(), value])
            .chain(flag)
            .collect()
    }

    fn behaviour(&self, number: usize) -> Behaviour {
        let place = number.checked_sub(self.prompt_count());
        let behaviour = place.and_then(|place| BAD.get(place));
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
