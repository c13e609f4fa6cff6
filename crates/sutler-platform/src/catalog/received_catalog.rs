//! Reads a catalog as a broker sent it: each offering and each plan by itself.
//!
//! A catalog is untrusted input and may be usable only in part. The rules of the specification for one item are those of
//! `sutler_osb::Catalog::load`; rules across items are in `unique_values.rs`. Schemas are not compiled here: ten
//! thousand that are made to be slow would take minutes. They are compiled when parameters are checked (`plan_schemas.rs`).

use super::sync_fault::ItemProblem;
use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::Value;
use sutler_osb::{
    BodyError, Catalog, CatalogFaults, Plan, PlanSpec, ServiceOffering, ServiceSpec, from_json,
};
use sutler_schema::Extent;

/// Most offerings of a broker that are kept, and that are read of a catalog.
pub const SERVICES_MAX: usize = 1_000;
/// Most plans of a broker that are kept, and that are read of a catalog.
pub const PLANS_MAX: usize = 10_000;
/// Longest item in bytes of JSON, an offering without its plans or a plan: half of what a commit may write.
pub const ITEM_BYTES_MAX: usize = 512 * 1024;

/// Deepest item, in levels of JSON: it is kept inside other objects.
const ITEM_LEVELS_MAX: usize = 100;

/// A catalog as it was received.
pub(super) struct ReceivedCatalog {
    /// Offerings in their order.
    pub(super) services: Vec<ReceivedService>,
    /// Ids of offerings beyond [`SERVICES_MAX`].
    pub(super) unread_ids: Vec<String>,
    /// Number of offerings beyond [`SERVICES_MAX`].
    pub(super) unread: usize,
}

/// An offering as it was received.
pub(super) struct ReceivedService {
    /// Its id, if it has a text there.
    pub(super) id: Option<String>,
    /// Its name, if it has a text there.
    pub(super) name: Option<String>,
    /// The offering without its plans, if it is usable.
    pub(super) offering: Result<ServiceOffering, ItemProblem>,
    /// Its plans in their order.
    pub(super) plans: Vec<ReceivedPlan>,
    /// Ids of plans beyond [`PLANS_MAX`].
    pub(super) unread_ids: Vec<String>,
    /// Number of plans beyond [`PLANS_MAX`].
    pub(super) unread: usize,
}

/// A plan as it was received.
pub(super) struct ReceivedPlan {
    /// Its id, if it has a text there.
    pub(super) id: Option<String>,
    /// Its name, if it has a text there.
    pub(super) name: Option<String>,
    /// The plan, if it is usable.
    pub(super) plan: Result<Plan, ItemProblem>,
}

#[derive(Deserialize)]
struct CatalogBody {
    services: Vec<Value>,
}

/// Reads the body of a catalog into its offerings, without looking into them.
///
/// An empty list is a catalog without offerings. A body without a list is no catalog: what is kept must not change.
///
/// # Errors
/// A sentence for the operator.
pub fn read_offerings(body: &[u8]) -> Result<Vec<Value>, BodyError> {
    from_json::<CatalogBody>(body).map(|body| body.services)
}

impl ReceivedCatalog {
    /// Checks each offering and each plan.
    pub(super) fn read(offerings: Vec<Value>) -> Self {
        let unread = offerings.len().saturating_sub(SERVICES_MAX);
        let mut unread_ids = Vec::new();
        let mut services = Vec::with_capacity(offerings.len() - unread);
        let mut plans_left = PLANS_MAX;
        for offering in offerings {
            if services.len() < SERVICES_MAX {
                services.push(read_service(offering, &mut plans_left));
            } else {
                unread_ids.extend(text(&offering, "id"));
            }
        }
        Self {
            services,
            unread_ids,
            unread,
        }
    }
}

impl ReceivedService {
    /// Name or id, for messages.
    pub(super) fn label(&self) -> Option<&str> {
        self.name.as_deref().or(self.id.as_deref())
    }

    /// Whether at least one plan is usable by itself.
    pub(super) fn has_usable_plan(&self) -> bool {
        self.plans.iter().any(|plan| plan.plan.is_ok())
    }
}

impl ReceivedPlan {
    /// Name or id, for messages.
    pub(super) fn label(&self) -> Option<&str> {
        self.name.as_deref().or(self.id.as_deref())
    }
}

fn read_service(mut offering: Value, plans_left: &mut usize) -> ReceivedService {
    let plans = offering
        .as_object_mut()
        .and_then(|fields| fields.remove("plans"));
    let mut service = ReceivedService {
        id: text(&offering, "id"),
        name: text(&offering, "name"),
        offering: read_offering(&offering),
        plans: Vec::new(),
        unread_ids: Vec::new(),
        unread: 0,
    };
    let problem = match plans {
        Some(Value::Array(plans)) if !plans.is_empty() => {
            for plan in plans {
                if *plans_left > 0 {
                    *plans_left -= 1;
                    service.plans.push(read_plan(&plan));
                } else {
                    service.unread += 1;
                    service.unread_ids.extend(text(&plan, "id"));
                }
            }
            None
        }
        None | Some(Value::Null | Value::Array(_)) => Some("must have at least one plan"),
        Some(Value::Bool(_) | Value::Number(_) | Value::String(_) | Value::Object(_)) => {
            Some("must be a list of plans")
        }
    };
    if let (Ok(_), Some(reason)) = (&service.offering, problem) {
        service.offering = Err(ItemProblem::new(".plans", reason, "B-059"));
    }
    service
}

fn read_offering(offering: &Value) -> Result<ServiceOffering, ItemProblem> {
    let spec: ServiceSpec = read_spec(offering)?;
    // Plans are checked apart; the rules ask for one.
    let plan = PlanSpec {
        id: Some("id".to_owned()),
        name: Some("name".to_owned()),
        description: Some("description".to_owned()),
        ..PlanSpec::default()
    };
    let spec = ServiceSpec {
        plans: Some(vec![plan]),
        // Not used here, so a faulty one does no harm.
        dashboard_client: None,
        ..spec
    };
    let mut offering = loaded(spec, "services[0]")?;
    offering.plans.clear();
    Ok(offering)
}

fn read_plan(plan: &Value) -> ReceivedPlan {
    ReceivedPlan {
        id: text(plan, "id"),
        name: text(plan, "name"),
        plan: read_spec(plan).and_then(checked_plan),
    }
}

/// Checks a plan inside an offering that is without faults.
fn checked_plan(plan: PlanSpec) -> Result<Plan, ItemProblem> {
    let spec = ServiceSpec {
        id: Some("id".to_owned()),
        name: Some("name".to_owned()),
        description: Some("description".to_owned()),
        bindable: Some(true),
        plans: Some(vec![plan]),
        ..ServiceSpec::default()
    };
    let offering = loaded(spec, "services[0].plans[0]")?;
    let plan = offering.plans.into_iter().next();
    plan.ok_or_else(|| ItemProblem::new("", "cannot be read", "P-046"))
}

/// Applies the rules of the specification. `path`: where the checked item begins.
fn loaded(spec: ServiceSpec, path: &str) -> Result<ServiceOffering, ItemProblem> {
    let catalog = Catalog::load(vec![spec]).map_err(|faults| problem(faults, path))?;
    let offering = catalog.services().first().cloned();
    offering.ok_or_else(|| ItemProblem::new("", "cannot be read", "P-046"))
}

/// The first fault, and the number of the others.
fn problem(faults: CatalogFaults, path: &str) -> ItemProblem {
    let more = faults.faults.len().saturating_sub(1);
    let Some(first) = faults.faults.into_iter().next() else {
        return ItemProblem::new("", "cannot be read", "P-046");
    };
    let field = first.path.strip_prefix(path).unwrap_or_default();
    let reason = match more {
        0 => first.reason,
        more => format!("{} (and {more} more)", first.reason),
    };
    ItemProblem::new(field, reason, first.rule)
}

/// Reads the raw form of one item, within bounds.
fn read_spec<T: DeserializeOwned>(item: &Value) -> Result<T, ItemProblem> {
    if !item.is_object() {
        return Err(ItemProblem::new("", "must be a JSON object", "P-046"));
    }
    // Before any recursive walk, printing included.
    if Extent::of(item).levels > ITEM_LEVELS_MAX {
        let reason = format!("must not be nested deeper than {ITEM_LEVELS_MAX} levels");
        return Err(ItemProblem::new("", reason, "P-046"));
    }
    let unprintable = |_| ItemProblem::new("", "cannot be read", "P-046");
    let json = serde_json::to_vec(item).map_err(unprintable)?;
    if json.len() > ITEM_BYTES_MAX {
        let bytes = json.len();
        let reason = format!("must not be larger than {ITEM_BYTES_MAX} bytes, but has {bytes}");
        return Err(ItemProblem::new("", reason, "P-046"));
    }
    from_json(&json).map_err(|error| match error {
        BodyError::Field { path, reason } => ItemProblem::new(&format!(".{path}"), reason, "P-046"),
        BodyError::Empty
        | BodyError::NotJson { .. }
        | BodyError::NotAnObject
        | BodyError::TooDeep
        | BodyError::Reserved
        | BodyError::Missing { .. }
        | BodyError::Whole { .. } => {
            ItemProblem::new("", format!("cannot be read: {error}"), "P-046")
        }
    })
}

/// The text of a field.
fn text(item: &Value, field: &str) -> Option<String> {
    let text = item.get(field).and_then(Value::as_str);
    text.filter(|text| !text.is_empty()).map(str::to_owned)
}
