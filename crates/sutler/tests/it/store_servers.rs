//! The executable over real servers: each behaviour is the same for every server of the store.
//!
//! `store_servers/fixture.rs` starts replicas over one store. The other files contain the behaviours, each a
//! function of the kind of server; [`on_server`] generates the tests of one kind. Servers are started by
//! `sutler-servers`.

mod bundles;
mod clock_skew;
mod fixture;
mod key_rotation;
mod open_errors;
mod outage;
mod paused_replica;
mod replicas;
mod round_trips;
mod start_latency;
mod url_secrets;

use sutler_servers::{Demands, Server, ServerUrl};

/// A callback with the URL of a server.
type UrlCallback<'a> = &'a mut dyn FnMut(&ServerUrl);

/// A kind of server.
pub(crate) struct ServerKind {
    /// The server that tests share.
    shared: fn() -> Option<&'static Server>,
    /// A server for one test.
    own: fn(Demands) -> Option<Server>,
    /// Makes a server require a password; returns a URL that needs one.
    guarded: fn(&Server) -> ServerUrl,
    /// A proxy in front of it.
    wire: fn(&Server) -> fixture::RunningProxy,
    /// Maximum round trips of a provision, its repeat and a poll.
    trips: [usize; 3],
    /// Time limit in which an idle replica must start an operation that another one accepted, in
    /// milliseconds.
    elsewhere_ms: u64,
    /// Opens the store itself, without a broker.
    open: fn(secrecy::SecretString) -> fixture::Opening,
    /// Recorded messages for stores that cannot be opened.
    refused: &'static str,
    /// Calls with a URL of a server that is too old.
    older: fn(UrlCallback<'_>),
}

/// The tests of one kind of server.
macro_rules! on_server {
    ($feature:literal, $name:ident) => {
        #[cfg(feature = $feature)]
        mod $name {
            use super::{bundles, clock_skew, key_rotation, open_errors, outage, paused_replica, replicas, round_trips, start_latency, url_secrets};
            use super::server_differences::$name as kind;

            on_server!(@tests kind;
                replicas two_replicas_share_one_store,
                replicas a_check_passes,
                bundles a_binding_of_a_bundle_is_unbound_and_its_instance_deprovisioned,
                outage an_outage_of_the_server_is_reported_and_everything_resumes_afterwards,
                url_secrets the_password_of_the_url_is_never_shown,
                open_errors each_fault_of_a_url_or_server_is_described_with_a_fix,
                paused_replica a_replica_that_was_paused_beyond_its_lease_writes_nothing,
                clock_skew a_minute_between_the_clocks_of_replicas_is_harmless,
                round_trips round_trips_of_requests_are_few,
                key_rotation a_key_is_rotated_while_replicas_run,
                start_latency operations_start_soon_on_this_and_on_other_replicas,
            );
        }
    };
    (@tests $kind:ident; $($file:ident $test:ident,)*) => {
        $(#[test] fn $test() { $file::$test(&$kind()); })*
    };
}

mod server_differences;

on_server!("postgres", postgres);
on_server!("mysql", mariadb);
on_server!("mongodb", mongodb);
on_server!("etcd", etcd);
