//! Catalogs of the test broker: together they have every feature of the protocol, and each is small
//! enough to be checked quickly. Fields that begin with `_` control the broker and are
//! never shown.

use serde_json::{Value, json};

/// A catalog of the test broker.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Kit {
    /// Everything, synchronous.
    Sync,
    /// Everything, asynchronous.
    Async,
    /// Asynchronous instances, synchronous bindings; nothing can be fetched.
    Mixed,
    /// A minimal catalog: nothing to bind, to fetch or to change.
    Plain,
    /// Log drains, routes and volumes.
    Requires,
}

/// A plan with the flags inherited from its offering.
#[derive(Clone, Debug)]
pub(crate) struct Plan {
    pub raw: Value,
    pub is_async: bool,
    pub is_async_bind: bool,
    pub is_bindable: bool,
    pub needs_app: bool,
    pub is_rotatable: bool,
    pub is_updateable: bool,
    pub are_instances_retrievable: bool,
    pub are_bindings_retrievable: bool,
    has_dashboard: bool,
    requires: Value,
}

impl Kit {
    /// All of them, the fastest to check first.
    pub(crate) const ALL: [Self; 5] = [
        Self::Plain,
        Self::Sync,
        Self::Requires,
        Self::Mixed,
        Self::Async,
    ];

    /// The catalog as platforms see it.
    pub(crate) fn catalog(self) -> Value {
        let mut services = self.services();
        strip(&mut services);
        json!({ "services": services })
    }

    /// A plan, if this offering has it.
    pub(crate) fn plan(self, service_id: &str, plan_id: &str) -> Option<Plan> {
        let services = self.services();
        let offering = found(&services, service_id)?;
        let plan = found(&offering["plans"], plan_id)?;
        let inherited = |name: &str| {
            let own = plan[name].as_bool();
            own.or(offering[name].as_bool()).unwrap_or(false)
        };
        Some(Plan {
            is_async: inherited("_async"),
            is_async_bind: inherited("_async_bind"),
            is_bindable: inherited("bindable"),
            needs_app: inherited("_needs_app"),
            is_rotatable: inherited("binding_rotatable"),
            is_updateable: inherited("plan_updateable"),
            are_instances_retrievable: inherited("instances_retrievable"),
            are_bindings_retrievable: inherited("bindings_retrievable"),
            has_dashboard: inherited("_dashboard"),
            requires: offering["requires"].clone(),
            raw: plan.clone(),
        })
    }

    fn services(self) -> Value {
        match self {
            Self::Sync => json!([offering("notes", &full(1, false))]),
            Self::Async => json!([offering("databases", &full(2, true))]),
            Self::Mixed => json!([offering("clusters", &mixed())]),
            Self::Plain => json!([offering("plain", &plain())]),
            Self::Requires => json!([
                offering("drains", &requiring(5, "syslog_drain")),
                offering("routes", &requiring(6, "route_forwarding")),
                offering("volumes", &requiring(7, "volume_mount")),
            ]),
        }
    }
}

impl Plan {
    pub(crate) fn id(&self) -> &str {
        self.raw["id"].as_str().unwrap_or_default()
    }

    /// Dashboard URL of an instance of this plan.
    pub(crate) fn dashboard(&self, instance: &str) -> Option<String> {
        let encoded: String = instance
            .bytes()
            .map(|it| match it {
                b'-' | b'0'..=b'9' | b'a'..=b'z' | b'A'..=b'Z' => char::from(it).to_string(),
                _ => format!("%{it:02X}"),
            })
            .collect();
        self.has_dashboard
            .then(|| format!("https://dashboard.example/{encoded}"))
    }

    /// Contents of a new binding; `secret` is unique to it.
    pub(crate) fn binding_info(&self, secret: &str) -> Value {
        let mut info = json!({
            "credentials": { "user": format!("user-of-{secret}"), "password": secret },
            "endpoints": [{ "host": "notes.example", "ports": ["443", "9000-9010"], "protocol": "tcp" }],
        });
        if self.is_rotatable {
            info["metadata"] = json!({
                "expires_at": "2099-12-31T23:59:59.0Z",
                "renew_before": "2099-11-30T23:59:59.0Z",
            });
        }
        match self.requires[0].as_str() {
            Some("syslog_drain") => {
                info["syslog_drain_url"] = json!("syslog-tls://logs.example:6514");
            }
            Some("route_forwarding") => {
                info["route_service_url"] = json!("https://proxy.example/forward");
            }
            Some("volume_mount") => {
                info["volume_mounts"] = json!([{
                    "driver": "nfs",
                    "container_dir": "/data",
                    "mode": "rw",
                    "device_type": "shared",
                    "device": { "volume_id": secret, "mount_config": { "share": "/exports" } },
                }]);
            }
            _ => {}
        }
        info
    }
}

fn found<'a>(list: &'a Value, id: &str) -> Option<&'a Value> {
    list.as_array()?.iter().find(|it| it["id"] == id)
}

/// Removes fields that control the broker.
fn strip(value: &mut Value) {
    match value {
        Value::Object(object) => {
            object.retain(|name, _| !name.starts_with('_'));
            object.values_mut().for_each(strip);
        }
        Value::Array(list) => list.iter_mut().for_each(strip),
        _ => {}
    }
}

/// An offering with this name and additional fields.
fn offering(name: &str, more: &Value) -> Value {
    let mut offering =
        json!({ "name": name, "description": format!("The {name} of the test kit") });
    if let (Some(offering), Some(more)) = (offering.as_object_mut(), more.as_object()) {
        offering.extend(more.clone());
    }
    offering
}

/// A realistic id; `n` distinguishes offerings, `m` their plans.
fn id(n: u32, m: u32) -> String {
    format!("0c9f8a52-5d4e-4b7c-9a61-{n:06}{m:06}")
}

fn full(n: u32, takes_time: bool) -> Value {
    json!({
        "id": id(n, 0),
        "bindable": true,
        "instances_retrievable": true,
        "bindings_retrievable": true,
        "allow_context_updates": true,
        "plan_updateable": true,
        "tags": ["kit"],
        "metadata": { "displayName": "Of the test kit" },
        "dashboard_client": { "id": "kit", "secret": "kit-secret", "redirect_uri": "https://kit.example" },
        "_async": takes_time,
        "_async_bind": takes_time,
        "_dashboard": true,
        "plans": [
            {
                "id": id(n, 1),
                "name": "small",
                "description": "A small one",
                "free": true,
                "bindable": true,
                "plan_updateable": true,
                "binding_rotatable": true,
                "metadata": { "bullets": ["Small"], "costs": [{ "amount": { "eur": 0.5 }, "unit": "MONTHLY" }] },
                "maximum_polling_duration": 60,
                "maintenance_info": { "version": "1.2.3", "description": "Restarts it" },
                "schemas": schemas(),
            },
            {
                "id": id(n, 2),
                "name": "large",
                "description": "A large one",
                "free": false,
                "maintenance_info": { "version": "2.0.0-beta.1", "description": "Restarts it" },
                "schemas": schemas(),
            },
        ],
    })
}

fn schemas() -> Value {
    let draft = "http://json-schema.org/draft-07/schema#";
    let closed = |required: Value, properties: Value| {
        json!({ "parameters": {
            "$schema": draft,
            "type": "object",
            "additionalProperties": false,
            "required": required,
            "properties": properties,
        }})
    };
    json!({
        "service_instance": {
            "create": closed(json!(["title"]), json!({
                "title": { "type": "string", "minLength": 1, "maxLength": 40 },
                "replicas": { "type": "integer", "minimum": 1, "maximum": 5 },
            })),
            "update": closed(json!([]), json!({
                "replicas": { "type": "integer", "minimum": 1, "maximum": 5 },
            })),
        },
        "service_binding": {
            "create": closed(json!([]), json!({ "access": { "enum": ["read", "write"] } })),
        },
    })
}

fn mixed() -> Value {
    json!({
        "id": id(3, 0),
        "bindable": true,
        "_async": true,
        "_needs_app": true,
        "plans": [{ "id": id(3, 1), "name": "only", "description": "The only one" }],
    })
}

fn plain() -> Value {
    json!({
        "id": id(4, 0),
        "bindable": false,
        "plans": [
            { "id": id(4, 1), "name": "one", "description": "One of two" },
            { "id": id(4, 2), "name": "two", "description": "The other of two" },
        ],
    })
}

fn requiring(n: u32, what: &str) -> Value {
    json!({
        "id": id(n, 0),
        "bindable": true,
        "bindings_retrievable": true,
        "requires": [what],
        "plans": [{ "id": id(n, 1), "name": "only", "description": "The only one" }],
    })
}
