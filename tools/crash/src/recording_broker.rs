//! The recording broker: a broker in a process of its own that does what a script says, and writes down each request
//! before it answers.
//!
//! `recording_broker/script.rs` (how it answers), `recording_broker/broker_state.rs` (what it has; pure),
//! `recording_broker/received_request.rs` (what it writes down), `recording_broker/http_exchange.rs` (requests and
//! answers on a socket). This file serves them: OSB requests below `/v2`, and the harness's own below `/recording`. It
//! judges nothing; that is done from its log (`platform_kills/`).

mod broker_state;
mod http_exchange;
mod received_request;
mod script;

pub use broker_state::{BrokerState, Resource};
pub use received_request::{BrokerAnswer, ReceivedRequest, RequestEffect, SENDER, read_requests};
pub use script::{Reply, RequestKind, Rule, RuleScope, Script};

use crate::victim::now_us;
use broker_state::Outcome;
use clap::Args;
use http_exchange::{ParsedRequest, read_request, write_answer};
use received_request::RequestLog;
use serde_json::{Value, json};
use std::io::Write as _;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use tokio::net::{TcpListener, TcpStream};

/// Arguments of the recording broker.
#[derive(Args, Clone, Debug)]
pub struct RecordingBrokerArgs {
    /// Port to listen on; 0 for any
    #[arg(long, default_value_t = 0)]
    pub port: u16,
}

struct RecordingBroker {
    state: Mutex<RecordingState>,
}

#[derive(Default)]
struct RecordingState {
    script: Script,
    broker: BrokerState,
    log: RequestLog,
}

/// Serves until it is killed, or until the end of its standard input.
///
/// # Errors
/// It cannot listen.
pub async fn run(args: RecordingBrokerArgs) -> Result<(), Box<dyn std::error::Error>> {
    let listener = TcpListener::bind(("127.0.0.1", args.port)).await?;
    let mut out = std::io::stdout();
    writeln!(out, "ready {}", listener.local_addr()?)?;
    out.flush()?;
    std::thread::spawn(|| {
        let _ = std::io::copy(&mut std::io::stdin().lock(), &mut std::io::sink());
        // The harness is gone.
        std::process::exit(1);
    });
    let broker = Arc::new(RecordingBroker {
        state: Mutex::default(),
    });
    loop {
        let (stream, _) = listener.accept().await?;
        let broker = Arc::clone(&broker);
        tokio::spawn(async move { broker.serve(stream).await });
    }
}

impl RecordingBroker {
    async fn serve(&self, mut stream: TcpStream) -> Option<()> {
        let _ = stream.set_nodelay(true);
        let mut buffer = Vec::new();
        loop {
            let request = read_request(&mut stream, &mut buffer).await?;
            let answer = match request.target.strip_prefix("/recording") {
                Some(order) => self.order(order, &request),
                None => {
                    let answer = self.answer(&request);
                    let delay = self.state().script.delay_ms;
                    tokio::time::sleep(Duration::from_millis(delay)).await;
                    answer
                }
            };
            match answer {
                BrokerAnswer::Sent { status, body } => {
                    write_answer(&mut stream, status, &body).await?;
                }
                BrokerAnswer::Closed => return None,
                BrokerAnswer::Silent => {
                    // Until the platform gives up.
                    let _ = stream.readable().await;
                    return None;
                }
            }
        }
    }

    fn state(&self) -> MutexGuard<'_, RecordingState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// An OSB request: answered as the script says, and written down.
    fn answer(&self, request: &ParsedRequest) -> BrokerAnswer {
        let mut state = self.state();
        let RecordingState {
            script,
            broker,
            log,
        } = &mut *state;
        let Outcome { effect, answer } = broker.handle(request, script);
        let received = ReceivedRequest::of(now_us(), request, effect, answer.clone());
        if log.write(&received).is_err() {
            // Without the log nothing can be judged.
            std::process::exit(1);
        }
        answer
    }

    /// An order of the harness.
    fn order(&self, order: &str, request: &ParsedRequest) -> BrokerAnswer {
        let mut state = self.state();
        let done = match (request.method.as_str(), order) {
            ("PUT", "/script") => state.begin(&request.body).map(|()| json!({})),
            ("PUT", "/rules") => state.replace_rules(&request.body).map(|()| json!({})),
            ("PUT", "/delay") => state.set_delay(&request.body).map(|()| json!({})),
            ("PUT", "/catalog") => state.replace_catalog(&request.body).map(|()| json!({})),
            ("GET", "/state") => serde_json::to_value(&state.broker).map_err(|it| it.to_string()),
            _ => Err("no such order".to_owned()),
        };
        match done {
            Ok(body) => BrokerAnswer::Sent { status: 200, body },
            Err(sentence) => BrokerAnswer::Sent {
                status: 400,
                body: Value::from(sentence),
            },
        }
    }
}

impl RecordingState {
    /// Forgets everything, and begins with this script.
    fn begin(&mut self, body: &[u8]) -> Result<(), String> {
        let script: Script = serde_json::from_slice(body).map_err(|it| it.to_string())?;
        self.log = RequestLog::open(&script.log).map_err(|it| it.to_string())?;
        self.broker = script.begins_with.clone();
        self.script = script;
        Ok(())
    }

    fn replace_rules(&mut self, body: &[u8]) -> Result<(), String> {
        self.script.rules = serde_json::from_slice(body).map_err(|it| it.to_string())?;
        Ok(())
    }

    fn set_delay(&mut self, body: &[u8]) -> Result<(), String> {
        self.script.delay_ms = serde_json::from_slice(body).map_err(|it| it.to_string())?;
        Ok(())
    }

    fn replace_catalog(&mut self, body: &[u8]) -> Result<(), String> {
        self.script.catalog = serde_json::from_slice(body).map_err(|it| it.to_string())?;
        Ok(())
    }
}
