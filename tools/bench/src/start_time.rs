//! Start-up: idle memory, and the time to the first response, also with many unfinished operations.

use crate::RunArgs;
use crate::http_pairs::fresh_dir;
use crate::load::BoxError;
use crate::load::{self, Kind};
use crate::report::{bound, print_line};
use crate::subject::{Server, Subject};

/// Operations left unfinished before a start.
const UNFINISHED: f64 = 100_000.0;

pub(crate) async fn measure(args: &RunArgs) -> Result<(), BoxError> {
    print_line("\n-- starting --");
    let dir = fresh_dir(&args.dir.join("starts"))?;
    drop(Server::start(Subject::Broker, &dir).await?);
    let idle = Server::start(Subject::Broker, &dir).await?;
    bound("idle memory", idle.resident_mb(), 20.0, "MB");
    bound("ready, empty", idle.ready.as_secs_f64() * 1e3, 100.0, "ms");
    drop(idle);

    let mut stuck = Server::start(Subject::StuckBroker, &dir).await?;
    let mut accepted = 0.0;
    while accepted < UNFINISHED {
        let measured = load::spawn(Kind::Accept, stuck.port, 2.0, args.connections, None)?;
        accepted += measured.per_second * 2.0;
    }
    stuck.kill();
    let again = Server::start(Subject::StuckBroker, &dir).await?;
    let what = format!("ready, {:.0} unfinished operations, killed", accepted);
    bound(&what, again.ready.as_secs_f64() * 1e3, 100.0, "ms");
    drop(again);

    let mut loaded = Server::start(Subject::StuckBroker, &dir).await?;
    let port = loaded.port;
    let connections = args.connections;
    let load = std::thread::spawn(move || {
        // It ends with an error when the server is killed, as intended.
        let _ = load::spawn(Kind::Accept, port, 5.0, connections, None);
    });
    tokio::time::sleep(std::time::Duration::from_secs(2)).await;
    loaded.kill();
    let recovered = Server::start(Subject::StuckBroker, &dir).await?;
    bound(
        "ready after SIGKILL under load",
        recovered.ready.as_secs_f64() * 1e3,
        100.0,
        "ms",
    );
    let _ = load.join();
    Ok(())
}
