//! The witness: a broker in a process of its own that does what a script says, and writes down each request before it
//! answers.
//!
//! `witness/script.rs` (how it answers), `witness/broker_state.rs` (what it has; pure), `witness/received_request.rs` (what
//! it writes down), `witness/http_exchange.rs` (requests and answers on a socket). This file serves them: OSB requests below
//! `/v2`, and the harness's own below `/witness`. It judges nothing; that is done from its log (`platform_kills/`).

mod broker_state;
mod http_exchange;
mod received_request;
mod script;

pub use broker_state::{BrokerState, Resource};
pub use received_request::{GivenAnswer, ReceivedRequest, RequestEffect, SENDER, read_requests};
pub use script::{Reply, Rule, RuleScope, Script, WitnessVerb};

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

/// Arguments of the witness.
#[derive(Args, Clone, Debug)]
pub struct WitnessArgs {
    /// Port to listen on; 0 for any
    #[arg(long, default_value_t = 0)]
    pub port: u16,
}

struct Witness {
    state: Mutex<WitnessState>,
}

#[derive(Default)]
struct WitnessState {
    script: Script,
    broker: BrokerState,
    log: RequestLog,
}

/// Serves until it is killed, or until the end of its standard input.
///
/// # Errors
/// It cannot listen.
pub async fn run(args: WitnessArgs) -> Result<(), Box<dyn std::error::Error>> {
    let listener = TcpListener::bind(("127.0.0.1", args.port)).await?;
    let mut out = std::io::stdout();
    writeln!(out, "ready {}", listener.local_addr()?)?;
    out.flush()?;
    std::thread::spawn(|| {
        let _ = std::io::copy(&mut std::io::stdin().lock(), &mut std::io::sink());
        // The harness is gone.
        std::process::exit(1);
    });
    let witness = Arc::new(Witness {
        state: Mutex::default(),
    });
    loop {
        let (stream, _) = listener.accept().await?;
        let witness = Arc::clone(&witness);
        tokio::spawn(async move { witness.serve(stream).await });
    }
}

impl Witness {
    async fn serve(&self, mut stream: TcpStream) -> Option<()> {
        let _ = stream.set_nodelay(true);
        let mut buffer = Vec::new();
        loop {
            let request = read_request(&mut stream, &mut buffer).await?;
            let answer = match request.target.strip_prefix("/witness") {
                Some(order) => self.order(order, &request),
                None => {
                    let answer = self.answer(&request);
                    let delay = self.state().script.delay_ms;
                    tokio::time::sleep(Duration::from_millis(delay)).await;
                    answer
                }
            };
            match answer {
                GivenAnswer::Sent { status, body } => {
                    write_answer(&mut stream, status, &body).await?;
                }
                GivenAnswer::Closed => return None,
                GivenAnswer::Silent => {
                    // Until the platform gives up.
                    let _ = stream.readable().await;
                    return None;
                }
            }
        }
    }

    fn state(&self) -> MutexGuard<'_, WitnessState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// An OSB request: answered as the script says, and written down.
    fn answer(&self, request: &ParsedRequest) -> GivenAnswer {
        let mut state = self.state();
        let WitnessState {
            script,
            broker,
            log,
        } = &mut *state;
        let Outcome { effect, answer } = broker.handle(request, script);
        let received = ReceivedRequest::of(now_us(), request, effect, answer.clone());
        if log.write(&received).is_err() {
            // Without the log there is no witness.
            std::process::exit(1);
        }
        answer
    }

    /// An order of the harness.
    fn order(&self, order: &str, request: &ParsedRequest) -> GivenAnswer {
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
            Ok(body) => GivenAnswer::Sent { status: 200, body },
            Err(sentence) => GivenAnswer::Sent {
                status: 400,
                body: Value::from(sentence),
            },
        }
    }
}

impl WitnessState {
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
