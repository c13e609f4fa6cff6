//! `sutler admin`: reads and actions of operators, over the administration API of a running broker.
//!
//! Flags and dispatch. The connection is in `admin/client.rs`, lists in `admin/list.rs` and
//! `admin/table.rs`, bundles in `admin/bundles.rs`, actions in `admin/actions.rs`, logs in `admin/logs.rs`, keys in
//! `admin/keys.rs` and `admin/rekey.rs`, errors and exit codes in `admin/error.rs`.

mod actions;
mod bundles;
mod client;
mod error;
mod keys;
mod list;
mod logs;
pub(crate) mod registry;
mod rekey;
mod table;
mod transfer;

use clap::{Args, Subcommand, ValueEnum};
use client::AdminClient;
use error::AdminError;
use secrecy::SecretString;
use std::path::PathBuf;
use std::process::ExitCode;

/// Inspect a running broker, and repair stuck operations.
#[derive(Args)]
#[command(
    after_help = "Exit codes: 0 done, 1 failed, 2 wrong usage, 3 not found, 4 refused by the broker, 5 not confirmed."
)]
pub(crate) struct AdminArgs {
    #[command(flatten)]
    connection: ConnectionArgs,
    #[command(subcommand)]
    command: AdminCommand,
}

/// Address of the broker, and the operator.
#[derive(Args)]
pub(super) struct ConnectionArgs {
    /// URL of the administration API
    #[arg(
        long,
        global = true,
        value_name = "URL",
        env = "SUTLER_ADMIN_URL",
        default_value = "http://127.0.0.1:8080/admin"
    )]
    url: String,
    /// The operator's name
    #[arg(long, global = true, value_name = "NAME", env = "SUTLER_ADMIN_USER")]
    user: Option<String>,
    /// Read the password from a file; otherwise SUTLER_ADMIN_PASSWORD is used
    #[arg(long, global = true, value_name = "FILE")]
    password_file: Option<PathBuf>,
    /// Trust the authorities in this PEM file, besides those of the system
    #[arg(long, global = true, value_name = "FILE", env = "SUTLER_ADMIN_CA")]
    ca: Option<PathBuf>,
    /// The realm of the broker [default: the realm of the default platform]
    #[arg(long, global = true, value_name = "NAME")]
    realm: Option<String>,
    /// Output format
    #[arg(
        long,
        short,
        global = true,
        value_enum,
        value_name = "FORMAT",
        default_value_t = AdminOutput::Table
    )]
    output: AdminOutput,
}

/// Output format.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(super) enum AdminOutput {
    /// Columns
    Table,
    /// The response of the broker, as JSON
    Json,
    /// Only ids, one per line
    Name,
}

#[derive(Subcommand)]
enum AdminCommand {
    /// List service instances, show one, or act on one
    #[command(subcommand)]
    Instances(InstanceCommand),
    /// List service bindings, show one, or act on one
    #[command(subcommand)]
    Bindings(BindingCommand),
    /// List operations, newest first, or show one
    #[command(subcommand)]
    Operations(OperationCommand),
    /// List the offered bundles, and why others are not offered
    Bundles,
    /// Print the log of an operation
    Logs(logs::LogArgs),
    /// List the actions of operators, newest first
    #[command(subcommand)]
    Audit(AuditCommand),
    /// Show counts of operations, and whether the broker drains
    Stats,
    /// Refuse changes and start nothing until `resume`; reads and running operations continue
    Drain(actions::ReasonArgs),
    /// Accept changes again
    Resume(actions::ReasonArgs),
    /// Write everything of a realm to a file of JSON lines, sealed as in the store
    Export(transfer::ExportArgs),
    /// Read a file of `export` into a broker with the same keys and the same realm
    Import(transfer::ImportArgs),
    /// Write a copy of the broker's database to a file while it runs
    Backup(transfer::BackupArgs),
    /// List the keys that seal the broker's store, or retire one
    #[command(subcommand)]
    Keys(keys::KeysCommand),
    /// Let the broker seal everything in its store with the current key while it runs
    Rekey(rekey::RekeyArgs),
}

#[derive(Subcommand)]
enum InstanceCommand {
    /// List them
    List(list::InstanceFilters),
    /// Show one
    Show(InstanceIdArg),
    /// Retry the last failed operation, or run a waiting attempt now
    Retry(actions::InstanceActionArgs),
    /// Ask the running operation to stop
    Cancel(actions::InstanceActionArgs),
    /// End the running operation as failed, without waiting for it
    Abandon(actions::InstanceActionArgs),
    /// Forget it and its bindings without calling the service; asks first
    Purge(actions::InstanceActionArgs),
}

#[derive(Subcommand)]
enum BindingCommand {
    /// List them
    List(list::BindingFilters),
    /// Show one
    Show(BindingIdArg),
    /// Retry the last failed operation, or run a waiting attempt now
    Retry(actions::BindingActionArgs),
    /// Ask the running operation to stop
    Cancel(actions::BindingActionArgs),
    /// End the running operation as failed, without waiting for it
    Abandon(actions::BindingActionArgs),
    /// Forget it without calling the service; asks first
    Purge(actions::BindingActionArgs),
}

#[derive(Subcommand)]
enum OperationCommand {
    /// List them, newest first
    List(list::OperationFilters),
    /// Show one
    Show {
        /// Its id
        #[arg(value_name = "OPERATION")]
        id: String,
    },
}

#[derive(Subcommand)]
enum AuditCommand {
    /// List it, newest first
    List(list::AuditFilters),
}

/// Id of an instance.
#[derive(Args)]
pub(super) struct InstanceIdArg {
    /// The instance's id
    #[arg(value_name = "INSTANCE")]
    instance: String,
}

/// Ids of a binding.
#[derive(Args)]
pub(super) struct BindingIdArg {
    /// The id of the binding's instance
    #[arg(value_name = "INSTANCE")]
    instance: String,
    /// The binding's id
    #[arg(value_name = "BINDING")]
    binding: String,
}

impl InstanceIdArg {
    fn path(&self) -> String {
        format!("instances/{}", client::segment(&self.instance))
    }
}

impl BindingIdArg {
    fn path(&self) -> String {
        let (instance, binding) = (&self.instance, &self.binding);
        format!(
            "bindings/{}/{}",
            client::segment(instance),
            client::segment(binding)
        )
    }
}

pub(crate) async fn run(args: AdminArgs) -> ExitCode {
    match command(args).await {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => {
            super::complain(&failure);
            failure.exit_code()
        }
    }
}

async fn command(args: AdminArgs) -> Result<(), AdminError> {
    let AdminArgs {
        connection,
        command,
    } = args;
    let output = connection.output;
    let client = AdminClient::connect(&connection, password(&connection)?)?;
    match command {
        AdminCommand::Instances(it) => instances(&client, output, it).await,
        AdminCommand::Bindings(it) => bindings(&client, output, it).await,
        AdminCommand::Operations(OperationCommand::List(filters)) => {
            list::run(
                &client,
                output,
                &table::OPERATIONS,
                &filters.query(),
                &filters.paging,
            )
            .await
        }
        AdminCommand::Operations(OperationCommand::Show { id }) => {
            list::show(
                &client,
                output,
                &format!("operations/{}", client::segment(&id)),
            )
            .await
        }
        AdminCommand::Audit(AuditCommand::List(filters)) => {
            list::run(
                &client,
                output,
                &table::AUDIT,
                &filters.query(),
                &filters.paging,
            )
            .await
        }
        AdminCommand::Bundles => bundles::run(&client, output).await,
        AdminCommand::Logs(args) => logs::run(&client, output, &args).await,
        AdminCommand::Stats => list::show(&client, output, "stats").await,
        AdminCommand::Drain(why) => actions::broker(&client, output, "drain", &why).await,
        AdminCommand::Resume(why) => actions::broker(&client, output, "resume", &why).await,
        AdminCommand::Export(args) => transfer::export(&client, &args).await,
        AdminCommand::Import(args) => transfer::import(&client, output, &args).await,
        AdminCommand::Backup(args) => transfer::backup(&client, &args).await,
        AdminCommand::Keys(command) => keys::run(&client, output, command).await,
        AdminCommand::Rekey(args) => rekey::run(&client, output, &args).await,
    }
}

async fn instances(
    client: &AdminClient,
    output: AdminOutput,
    it: InstanceCommand,
) -> Result<(), AdminError> {
    let (verb, on) = match it {
        InstanceCommand::List(filters) => {
            let query = filters.query();
            return list::run(client, output, &table::INSTANCES, &query, &filters.paging).await;
        }
        InstanceCommand::Show(id) => return list::show(client, output, &id.path()).await,
        InstanceCommand::Retry(on) => ("retry", on),
        InstanceCommand::Cancel(on) => ("cancel", on),
        InstanceCommand::Abandon(on) => ("abandon", on),
        InstanceCommand::Purge(on) => ("purge", on),
    };
    actions::give(
        client,
        output,
        verb,
        &on.id.path(),
        &on.id.instance,
        &on.why,
    )
    .await
}

async fn bindings(
    client: &AdminClient,
    output: AdminOutput,
    it: BindingCommand,
) -> Result<(), AdminError> {
    let (verb, on) = match it {
        BindingCommand::List(filters) => {
            let query = filters.query();
            return list::run(client, output, &table::BINDINGS, &query, &filters.paging).await;
        }
        BindingCommand::Show(id) => return list::show(client, output, &id.path()).await,
        BindingCommand::Retry(on) => ("retry", on),
        BindingCommand::Cancel(on) => ("cancel", on),
        BindingCommand::Abandon(on) => ("abandon", on),
        BindingCommand::Purge(on) => ("purge", on),
    };
    actions::give(client, output, verb, &on.id.path(), &on.id.binding, &on.why).await
}

/// The operator's password: from a file, or from the environment; never from a flag, which others
/// could see in the list of processes.
fn password(connection: &ConnectionArgs) -> Result<Option<SecretString>, AdminError> {
    if let Some(path) = &connection.password_file {
        let text =
            std::fs::read_to_string(path).map_err(|error| AdminError::file("read", path, error))?;
        return Ok(Some(SecretString::from(
            text.trim_end_matches(['\r', '\n']),
        )));
    }
    let text = std::env::var("SUTLER_ADMIN_PASSWORD").ok();
    Ok(text.filter(|it| !it.is_empty()).map(SecretString::from))
}
