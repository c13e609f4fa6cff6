//! The executable as its users see it: output, exit codes, and the walkthrough in the README.

mod admin_command;
mod broker_with_bundles;
mod bundle_commands;
mod bundle_lifecycle;
mod bundle_upgrades;
mod check_command;
mod cli_messages;
mod config_command;
mod graceful_shutdown;
mod hash_password;
mod http_request;
mod kill_at_every_step;
mod platform_command;
mod platform_scenarios;
mod platform_with_broker;
mod process;
mod pushed_services;
mod readme_walkthrough;
mod recorded_conversation;
mod registries;
mod reload_on_sighup;
mod secrets_do_not_leak;
mod shipped_bundles;
mod store_commands;
#[cfg(any(
    feature = "postgres",
    feature = "mysql",
    feature = "mongodb",
    feature = "etcd"
))]
mod store_servers;
mod telemetry;
#[cfg(feature = "postgres")]
mod two_hosts;
