//! Commands to the server, each with a time limit, and their results as rows.
//!
//! Reads go to the primary, with majority read concern; lists read from a snapshot. Not here: which commands.

use crate::commit_steps::StepResult;
use crate::error::MongoError;
use crate::rows::{self, Collection};
use crate::settings::MongoSettings;
use futures_util::TryStreamExt as _;
use mongodb::bson::{Bson, Document as Bsons, doc};
use mongodb::options::{FindOptions, ReadConcern};
use mongodb::{Client, ClientSession, Database};
use std::future::Future;
use std::time::Duration;

/// Time limit of a write that must not wait for others.
const A_MOMENT: Duration = Duration::from_millis(500);
/// Error codes of the server for a write that waited too long for another.
const TIME_IS_UP: i32 = 50;
const WRITE_CONFLICT: i32 = 112;

fn is_blocked(found: &StepResult) -> bool {
    matches!(found, StepResult::Error(TIME_IS_UP | WRITE_CONFLICT))
}

/// Client for commands to the server.
#[derive(Clone)]
pub(crate) struct CommandClient {
    pub(crate) client: Client,
    pub(crate) database: Database,
    pub(crate) settings: MongoSettings,
}

impl CommandClient {
    /// Waits for a response, within the time limit.
    pub(crate) async fn bounded<T, E: Into<MongoError>>(
        &self,
        work: impl Future<Output = Result<T, E>>,
    ) -> Result<T, MongoError> {
        bounded(self.settings.answer_timeout, work).await
    }

    /// A command to the database.
    pub(crate) async fn command(&self, command: Bsons) -> Result<Bsons, MongoError> {
        self.bounded(self.database.run_command(command).into_future())
            .await
    }

    /// A command to the server.
    pub(crate) async fn admin(&self, command: Bsons) -> Result<Bsons, MongoError> {
        let admin = self.client.database("admin");
        self.bounded(admin.run_command(command).into_future()).await
    }

    /// Writes outside a transaction: each step on its own, acknowledged by a majority.
    pub(crate) async fn write_each(
        &self,
        steps: Vec<Bsons>,
    ) -> Result<Vec<StepResult>, MongoError> {
        self.write_within(steps, self.settings.command_timeout)
            .await
    }

    /// Like `write_each`, but a step that an open transaction blocks is given up after a moment and returns
    /// `None`: a process that died in the middle of a commit must not block the others. A step may have been
    /// applied even if it reports that it found nothing.
    pub(crate) async fn write_free(
        &self,
        steps: Vec<Bsons>,
    ) -> Result<Vec<Option<StepResult>>, MongoError> {
        match self.write_within(steps.clone(), A_MOMENT).await {
            Ok(found) if !found.iter().any(is_blocked) => {
                return Ok(found.into_iter().map(Some).collect());
            }
            Ok(_)
            | Err(MongoError::Refused {
                code: TIME_IS_UP | WRITE_CONFLICT,
                ..
            }) => {}
            Err(trouble) => return Err(trouble),
        }
        let each = steps
            .into_iter()
            .map(|step| self.write_within(vec![step], A_MOMENT));
        let mut found = Vec::new();
        for answer in futures_util::future::join_all(each).await {
            found.push(match answer {
                Ok(mut answer) => answer.pop().filter(|it| !is_blocked(it)),
                Err(MongoError::Refused {
                    code: TIME_IS_UP | WRITE_CONFLICT,
                    ..
                }) => None,
                Err(trouble) => return Err(trouble),
            });
        }
        Ok(found)
    }

    async fn write_within(
        &self,
        steps: Vec<Bsons>,
        limit: Duration,
    ) -> Result<Vec<StepResult>, MongoError> {
        let mut command = self.bulk(steps);
        command.insert("ordered", false);
        command.insert("writeConcern", doc! { "w": "majority", "j": true });
        command.insert("maxTimeMS", millis(limit));
        read_results(&self.admin(command).await?)
    }

    /// Steps inside a transaction.
    pub(crate) async fn write_all(
        &self,
        steps: Vec<Bsons>,
        session: &mut ClientSession,
    ) -> Result<Vec<StepResult>, MongoError> {
        let mut command = self.bulk(steps);
        command.insert("maxTimeMS", millis(self.settings.command_timeout));
        let admin = self.client.database("admin");
        let answer = admin.run_command(command).session(session).into_future();
        read_results(&self.bounded(answer).await?)
    }

    fn bulk(&self, steps: Vec<Bsons>) -> Bsons {
        let places = Collection::ALL.map(|it| {
            let place = format!("{}.{}", self.database.name(), it.name());
            Bson::Document(doc! { "ns": place })
        });
        doc! {
            "bulkWrite": 1,
            "ops": steps,
            "nsInfo": places.to_vec(),
            "ordered": true,
            "errorsOnly": false,
        }
    }

    /// Documents that match a filter.
    pub(crate) async fn find(
        &self,
        collection: Collection,
        filter: Bsons,
        options: FindOptions,
    ) -> Result<Vec<Bsons>, MongoError> {
        let collection = self.database.collection::<Bsons>(collection.name());
        let found = async {
            let cursor = collection.find(filter).with_options(options).await?;
            cursor.try_collect::<Vec<Bsons>>().await
        };
        self.bounded(found).await
    }

    /// One document that matches a filter, with these fields only; all if none are named.
    pub(crate) async fn find_one(
        &self,
        collection: Collection,
        filter: Bsons,
        fields: &[&str],
    ) -> Result<Option<Bsons>, MongoError> {
        let mut found = self.find(collection, filter, one_with(fields)).await?;
        Ok(found.pop())
    }

    /// Like `find_one`, but an absent result is certain: the read is repeated on a server that is known to
    /// still be the primary.
    pub(crate) async fn find_surely(
        &self,
        collection: Collection,
        filter: Bsons,
        fields: &[&str],
    ) -> Result<Option<Bsons>, MongoError> {
        let found = self.find_one(collection, filter.clone(), fields).await?;
        if found.is_some() {
            return Ok(found);
        }
        let mut options = one_with(fields);
        options.read_concern = Some(ReadConcern::linearizable());
        // Without a majority the server would wait for ever.
        options.max_time = Some(self.settings.command_timeout);
        let mut found = self.find(collection, filter, options).await?;
        Ok(found.pop())
    }

    /// Results of a pipeline, from one snapshot.
    pub(crate) async fn snapshot(
        &self,
        collection: Collection,
        pipeline: Vec<Bsons>,
    ) -> Result<Vec<Bsons>, MongoError> {
        let collection = self.database.collection::<Bsons>(collection.name());
        let concern = ReadConcern::snapshot();
        let found = async {
            let cursor = collection.aggregate(pipeline).read_concern(concern).await?;
            cursor.try_collect::<Vec<Bsons>>().await
        };
        self.bounded(found).await
    }

    /// Results of a pipeline.
    pub(crate) async fn aggregate(
        &self,
        collection: Collection,
        pipeline: Vec<Bsons>,
    ) -> Result<Vec<Bsons>, MongoError> {
        let collection = self.database.collection::<Bsons>(collection.name());
        let found = async {
            let cursor = collection.aggregate(pipeline).await?;
            cursor.try_collect::<Vec<Bsons>>().await
        };
        self.bounded(found).await
    }
}

/// One document, with these fields only; all if none are named.
fn one_with(fields: &[&str]) -> FindOptions {
    let fields = fields.iter().map(|it| ((*it).to_owned(), Bson::Int32(1)));
    let fields: Bsons = fields.collect();
    let mut options = FindOptions::default();
    options.limit = Some(-1);
    options.projection = (!fields.is_empty()).then_some(fields);
    options
}

/// Waits for a response, up to a limit.
pub(crate) async fn bounded<T, E: Into<MongoError>>(
    limit: Duration,
    work: impl Future<Output = Result<T, E>>,
) -> Result<T, MongoError> {
    match tokio::time::timeout(limit, work).await {
        Ok(answer) => answer.map_err(Into::into),
        Err(_) => Err(MongoError::Lost("no answer in time".to_owned())),
    }
}

/// Duration for the server, in milliseconds.
pub(crate) fn millis(time: Duration) -> i64 {
    i64::try_from(time.as_millis()).unwrap_or(i64::MAX)
}

/// One result for each step, up to the first that failed.
fn read_results(answer: &Bsons) -> Result<Vec<StepResult>, MongoError> {
    let odd = || MongoError::odd("the results of a bulkWrite");
    if answer.contains_key("writeConcernError") {
        return Err(MongoError::Lost("not on a majority".to_owned()));
    }
    let cursor = answer.get_document("cursor").map_err(|_| odd())?;
    if rows::int(cursor, "id")? != 0 {
        return Err(odd());
    }
    let results = cursor.get_array("firstBatch").map_err(|_| odd())?;
    let mut found = vec![None; results.len()];
    for result in results {
        let result = result.as_document().ok_or_else(odd)?;
        let n = usize::try_from(rows::int(result, "idx")?).map_err(|_| odd())?;
        let code = result.get("code").and_then(Bson::as_i32);
        let step_result = match code {
            Some(code) => StepResult::Error(code),
            None => StepResult::Count(rows::int(result, "n")?),
        };
        *found.get_mut(n).ok_or_else(odd)? = Some(step_result);
    }
    found
        .into_iter()
        .collect::<Option<Vec<StepResult>>>()
        .ok_or_else(odd)
}

#[cfg(test)]
mod tests {
    use super::read_results;
    use crate::commit_steps::StepResult;
    use mongodb::bson::doc;

    #[test]
    fn results_are_read_by_their_number() {
        let answer = doc! { "cursor": { "id": 0_i64, "firstBatch": [
            { "ok": 0.0, "idx": 1, "code": 11000, "n": 0 },
            { "ok": 1.0, "idx": 0, "n": 1 },
        ] } };
        let found = read_results(&answer);
        assert_eq!(
            found,
            Ok(vec![StepResult::Count(1), StepResult::Error(11000)])
        );
    }

    #[test]
    fn half_an_answer_is_none() {
        let more = doc! { "cursor": { "id": 7_i64, "firstBatch": [] } };
        assert!(read_results(&more).is_err());
        let hole = doc! { "cursor": { "id": 0_i64, "firstBatch": [{ "idx": 3, "n": 1 }] } };
        assert!(read_results(&hole).is_err());
        let alone = doc! {
            "cursor": { "id": 0_i64, "firstBatch": [] }, "writeConcernError": { "code": 64 },
        };
        assert!(read_results(&alone).is_err());
    }
}
