//! The service: the steps of each verb, and the state that is stored.
//!
//! Three habits are worth copying. A value that must be the same in every attempt (a password) is a `cx.step`, so
//! that it is stored before it is used. Changes of the server are idempotent (`server.rs`). And the state that a
//! clean-up needs is saved before the first object is created, so that a failed creation can always be deleted.

use crate::names::{Name, Prefix};
use crate::parameters::{DatabaseSpec, Extension, Limits, Parameters, PlanLimits};
use crate::password;
use crate::server::Server;
use crate::settings::Settings;
use secrecy::{ExposeSecret as _, SecretString};
use std::time::Duration;
use sutler_broker::prelude::*;

/// Timeout of a verb, with all attempts.
const WITHIN: Duration = Duration::from_secs(30 * 60);
/// The wait before the second attempt.
const BACKOFF: Duration = Duration::from_millis(500);

/// The service: a database for every instance, a login for every binding.
pub struct Postgres {
    server: Server,
    prefix: Prefix,
    plans: PlanLimits,
    attempts: u32,
}

/// State of an instance. It has the name, so that a broker with another prefix still finds the database.
#[derive(Serialize, Deserialize)]
pub struct Instance {
    database: Name,
    spec: DatabaseSpec,
}

/// State of a binding.
#[derive(Serialize, Deserialize)]
struct Binding {
    login: Name,
}

impl Postgres {
    /// A service on a server, with the limits of its plans.
    pub fn new(settings: &Settings, plans: PlanLimits) -> Self {
        Self {
            server: Server::new(settings),
            prefix: settings.prefix.clone(),
            plans,
            attempts: settings.attempts,
        }
    }

    /// The limits of the plan. A plan that left the catalog keeps its last limits.
    fn limits(&self, cx: &Cx, known: Option<Limits>) -> Result<Limits> {
        let plan = cx.plan();
        let limits = self.plans.get(plan.plan_id.as_str()).or(known);
        limits.ok_or_else(|| Error::invalid("The plan is not offered any more; choose another."))
    }

    fn credentials(&self, database: &Name, login: &Name, password: &SecretString) -> Bound {
        let address = self.server.address();
        let (database, login) = (database.as_str(), login.as_str());
        let password = password.expose_secret();
        Bound::credentials(json!({
            "uri": format!("postgres://{login}:{password}@{address}/{database}"),
            "host": address.host,
            "port": address.port,
            "database": database,
            "username": login,
            "password": password,
        }))
    }

    fn login_of(&self, cx: &Cx) -> Name {
        let binding = cx.binding_id().map(|it| it.as_str());
        self.prefix
            .binding(cx.instance_id().as_str(), binding.unwrap_or_default())
    }
}

impl Service for Postgres {
    type Params = Parameters;
    type State = Instance;

    const UPDATES: bool = true;

    async fn provision(&self, cx: &Cx, params: Parameters) -> Result<Provisioned<Instance>> {
        let instance = Instance {
            database: self.prefix.instance(cx.instance_id().as_str()),
            spec: DatabaseSpec::new(self.limits(cx, None)?, &params)?,
        };
        let Instance { database, spec } = &instance;
        let mut session = self.server.open().await?;
        // Until here nothing is created, and a refusal leaves nothing behind.
        cx.step("look", || session.expect_extensions(spec)).await?;
        cx.save_state(&instance).await?;
        cx.progress("creating the owner").await?;
        cx.step("owner", || session.make_owner(database)).await?;
        cx.progress("creating the database").await?;
        cx.step("database", || session.make_database(database))
            .await?;
        cx.progress("setting it up").await?;
        session.apply_spec(database, &[], spec).await?;
        session.close().await;
        Ok(Provisioned::new(instance))
    }

    async fn update(
        &self,
        cx: &Cx,
        was: Instance,
        update: Update<Parameters>,
    ) -> Result<Updated<Instance>> {
        let limits = self.limits(cx, Some(was.spec.limits))?;
        let spec = DatabaseSpec::new(limits, &update.params)?;
        let extensions: Vec<Extension> = was.spec.extensions.into_iter().collect();
        let database = was.database;
        let mut session = self.server.open().await?;
        session.expect_extensions(&spec).await?;
        session.apply_spec(&database, &extensions, &spec).await?;
        session.close().await;
        Ok(Updated::new(Instance { database, spec }))
    }

    async fn bind(&self, cx: &Cx, instance: &Instance) -> Result<Bound> {
        let login = self.login_of(cx);
        let password: String = cx
            .step("password", || async { Ok(password::generate()) })
            .await?;
        let password = SecretString::from(password);
        let mut session = self.server.open().await?;
        session
            .make_login(&login, &instance.database, &password)
            .await?;
        session.close().await;
        let bound = self.credentials(&instance.database, &login, &password);
        bound.state(&Binding { login })
    }

    // There is no `rotate`: a rotation is a bind. Its login acts as the same owner as that of its
    // predecessor, and both work until the platform unbinds the old one.

    async fn unbind(&self, cx: &Cx, instance: &Instance) -> Result<()> {
        // A failed bind leaves no state, but may leave a login; its name is always the same.
        let login = match cx.binding_state::<Binding>()? {
            Some(binding) => binding.login,
            None => self.login_of(cx),
        };
        let mut session = self.server.open().await?;
        session
            .remove_role(&login, Some(&instance.database))
            .await?;
        session.close().await;
        Ok(())
    }

    async fn deprovision(&self, cx: &Cx, instance: Option<Instance>) -> Result<()> {
        let database = match instance {
            Some(instance) => instance.database,
            None => self.prefix.instance(cx.instance_id().as_str()),
        };
        let mut session = self.server.open().await?;
        cx.progress("removing the database").await?;
        session.remove_database(&database).await?;
        cx.progress("removing the roles").await?;
        for login in session.logins_of(&database).await? {
            session.remove_role(&login, None).await?;
        }
        session.remove_role(&database, None).await?;
        session.close().await;
        Ok(())
    }

    fn policy(&self, _verb: OperationKind, _plan: &PinnedPlan) -> Policy {
        Policy {
            attempts_max: self.attempts,
            backoff: BACKOFF,
            ..Policy::default().within(WITHIN)
        }
    }
}
