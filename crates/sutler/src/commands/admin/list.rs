//! Lists and single items: filters as flags, paging, output as table or JSON.

use super::AdminOutput;
use super::client::AdminClient;
use super::error::AdminError;
use super::table::{self, ListTable};
use clap::Args;
use serde_json::{Value, json};
use std::io::Write as _;

/// Page of a list.
#[derive(Args)]
pub(super) struct PagingArgs {
    /// Items on a page, at most 200
    #[arg(long, value_name = "NUMBER", default_value_t = 50)]
    limit: u16,
    /// Continue after the last item of the previous page
    #[arg(long, value_name = "CURSOR", conflicts_with = "all")]
    after: Option<String>,
    /// Fetch all pages
    #[arg(long)]
    all: bool,
    /// Sort the output by a member, such as created; a leading - reverses the order
    #[arg(long, value_name = "MEMBER", allow_hyphen_values = true)]
    sort: Option<String>,
}

/// Filters of instances.
#[derive(Args)]
pub(super) struct InstanceFilters {
    /// Only of this offering
    #[arg(long, value_name = "ID")]
    service: Option<String>,
    /// Only of this plan
    #[arg(long, value_name = "ID")]
    plan: Option<String>,
    /// Only in this state: creating, create_failed, live, updating, deleting, purging, gone
    #[arg(long, value_name = "STATE")]
    lifecycle: Option<String>,
    /// Only at this version, of its bundle or of its maintenance
    #[arg(long, value_name = "VERSION")]
    version: Option<String>,
    /// Only instances that the catalog has another version for (true), or only the others (false)
    #[arg(long, value_name = "true|false", num_args = 0..=1, default_missing_value = "true")]
    upgradable: Option<String>,
    /// Order of the pages: id, plan, lifecycle [default: id]
    #[arg(long, value_name = "MEMBER")]
    order: Option<String>,
    #[command(flatten)]
    pub paging: PagingArgs,
}

/// Filters of bindings.
#[derive(Args)]
pub(super) struct BindingFilters {
    /// Only of this instance
    #[arg(long, value_name = "ID")]
    instance: Option<String>,
    /// Only of this offering
    #[arg(long, value_name = "ID")]
    service: Option<String>,
    /// Only of this plan
    #[arg(long, value_name = "ID")]
    plan: Option<String>,
    /// Only in this state: creating, create_failed, live, deleting, gone
    #[arg(long, value_name = "STATE")]
    lifecycle: Option<String>,
    /// Order of the pages: id, lifecycle [default: id]
    #[arg(long, value_name = "MEMBER")]
    order: Option<String>,
    #[command(flatten)]
    pub paging: PagingArgs,
}

/// Filters of operations.
#[derive(Args)]
pub(super) struct OperationFilters {
    /// Only of this instance itself
    #[arg(long, value_name = "ID")]
    instance: Option<String>,
    /// Only of this binding of the instance
    #[arg(long, value_name = "ID", requires = "instance")]
    binding: Option<String>,
    /// Only in this state: unfinished, waiting, ready, running, succeeded, failed, cancelled
    #[arg(long, value_name = "STATE")]
    state: Option<String>,
    /// Only of this kind: provision, update, deprovision, bind, unbind
    #[arg(long, value_name = "VERB")]
    verb: Option<String>,
    /// Only with this end: succeeded, failed, cancelled
    #[arg(long, value_name = "OUTCOME")]
    outcome: Option<String>,
    #[command(flatten)]
    pub paging: PagingArgs,
}

/// Filters of the audit trail.
#[derive(Args)]
pub(super) struct AuditFilters {
    /// Only about this instance and its bindings
    #[arg(long, value_name = "ID")]
    instance: Option<String>,
    /// Only this action: retry, cancel, abandon, purge, drain …
    #[arg(long, value_name = "VERB")]
    verb: Option<String>,
    /// Only by this operator
    #[arg(long, value_name = "NAME")]
    who: Option<String>,
    /// Only with this outcome: started, done, nothing_to_do, refused
    #[arg(long, value_name = "OUTCOME")]
    outcome: Option<String>,
    #[command(flatten)]
    pub paging: PagingArgs,
}

/// A query's parameters.
type QueryPairs = Vec<(&'static str, String)>;

impl InstanceFilters {
    pub(super) fn query(&self) -> QueryPairs {
        set([
            ("service", &self.service),
            ("plan", &self.plan),
            ("lifecycle", &self.lifecycle),
            ("version", &self.version),
            ("upgradable", &self.upgradable),
            ("order", &self.order),
        ])
    }
}

impl BindingFilters {
    pub(super) fn query(&self) -> QueryPairs {
        set([
            ("instance", &self.instance),
            ("service", &self.service),
            ("plan", &self.plan),
            ("lifecycle", &self.lifecycle),
            ("order", &self.order),
        ])
    }
}

impl OperationFilters {
    pub(super) fn query(&self) -> QueryPairs {
        set([
            ("instance", &self.instance),
            ("binding", &self.binding),
            ("state", &self.state),
            ("verb", &self.verb),
            ("outcome", &self.outcome),
        ])
    }
}

impl AuditFilters {
    pub(super) fn query(&self) -> QueryPairs {
        set([
            ("instance", &self.instance),
            ("verb", &self.verb),
            ("who", &self.who),
            ("outcome", &self.outcome),
        ])
    }
}

fn set<const N: usize>(filters: [(&'static str, &Option<String>); N]) -> QueryPairs {
    let set = filters.into_iter();
    set.filter_map(|(name, value)| Some((name, value.clone()?)))
        .collect()
}

/// Prints a list.
pub(super) async fn run(
    client: &AdminClient,
    output: AdminOutput,
    listed: &ListTable,
    filters: &[(&'static str, String)],
    paging: &PagingArgs,
) -> Result<(), AdminError> {
    let mut items = Vec::new();
    let mut after = paging.after.clone();
    loop {
        let mut query = filters.to_vec();
        query.push(("limit", paging.limit.to_string()));
        query.extend(after.take().map(|after| ("after", after)));
        let mut page = client.get(listed.path, &query).await?;
        if let Value::Array(some) = page["items"].take() {
            items.extend(some);
        }
        after = page["next"].as_str().map(str::to_owned);
        if after.is_none() || !paging.all {
            break;
        }
    }
    if let Some(by) = &paging.sort {
        sort(&mut items, by);
    }
    match output {
        AdminOutput::Json => print(&pretty(&json!({ "items": items, "next": after }))),
        AdminOutput::Name => print(&table::names(listed, &items)),
        AdminOutput::Table => {
            print(&table::rows(listed, &items))?;
            match after {
                Some(after) => say(&format!(
                    "There are more: continue with --after {after}, or use --all."
                )),
                None => Ok(()),
            }
        }
    }
}

/// Prints a single item.
pub(super) async fn show(
    client: &AdminClient,
    output: AdminOutput,
    path: &str,
) -> Result<(), AdminError> {
    let thing = client.get(path, &[]).await?;
    shown(output, &thing)
}

/// Prints a response.
pub(super) fn shown(output: AdminOutput, thing: &Value) -> Result<(), AdminError> {
    match output {
        AdminOutput::Json => print(&pretty(thing)),
        AdminOutput::Table => print(&table::members(thing)),
        AdminOutput::Name => print(&format!("{}\n", thing["id"].as_str().unwrap_or("-"))),
    }
}

fn sort(items: &mut [Value], by: &str) {
    let (member, turned) = match by.strip_prefix('-') {
        Some(member) => (member, true),
        None => (by, false),
    };
    items.sort_by_cached_key(|item| item[member].to_string());
    if turned {
        items.reverse();
    }
}

fn pretty(value: &Value) -> String {
    format!("{value:#}\n")
}

pub(super) fn print(text: &str) -> Result<(), AdminError> {
    let mut out = anstream::stdout().lock();
    match out.write_all(text.as_bytes()).and_then(|()| out.flush()) {
        // The reader may have closed the pipe.
        Err(error) if error.kind() == std::io::ErrorKind::BrokenPipe => Ok(()),
        Err(error) => Err(AdminError::Failed(
            "the result could not be printed".to_owned(),
            Some(error.into()),
        )),
        Ok(()) => Ok(()),
    }
}

/// Prints a note to standard error.
pub(super) fn say(sentence: &str) -> Result<(), AdminError> {
    let _ = writeln!(anstream::stderr(), "{sentence}");
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::sort;
    use serde_json::json;

    #[test]
    fn printed_rows_can_be_sorted_in_both_directions() {
        let mut items = vec![
            json!({ "id": "b" }),
            json!({ "id": "a" }),
            json!({ "id": "c" }),
        ];
        sort(&mut items, "id");
        assert_eq!(items[0]["id"], "a");
        sort(&mut items, "-id");
        assert_eq!(items[0]["id"], "c");
    }
}
