//! A proxy in front of a registry, which forwards requests and intercepts those that a test names.
//!
//! Intercepts are matched by a part of the request line: `GET /v2/a/manifests/`. The most recent match counts.
//! Fixed
//! responses stay when intercepts are reset: without a server behind it, the proxy serves recorded responses.
//! `registry_proxy/tokens.rs` adds token authentication.

mod tokens;

use crate::http::{HttpRequest, HttpResponse, read_head};
use std::io::{Read as _, Write as _};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use tokens::TokenService;

/// Treatment of a request.
#[derive(Clone, Debug)]
pub enum Intercept {
    /// Respond with this, without forwarding the request.
    Answer {
        /// Status.
        status: u16,
        /// Headers.
        headers: Vec<(String, String)>,
        /// Body.
        body: String,
    },
    /// Close the connection without a response.
    Cut,
    /// Break off after this many bytes of the body, although `Content-Length` is larger.
    BreakOff(usize),
    /// Shorten the body to this many bytes, with a matching `Content-Length`.
    Truncate(usize),
    /// Hold the response until intercepts are reset.
    Hold,
}

impl Intercept {
    /// A response with a status only.
    #[must_use]
    pub fn status(status: u16) -> Self {
        Self::Answer {
            status,
            headers: Vec::new(),
            body: String::new(),
        }
    }

    /// A response with a text, such as JSON.
    #[must_use]
    pub fn text(body: &str) -> Self {
        Self::Answer {
            status: 200,
            headers: vec![("Content-Type".to_owned(), "application/json".to_owned())],
            body: body.to_owned(),
        }
    }

    /// Adds a header to the response.
    #[must_use]
    pub fn with(mut self, name: &str, value: &str) -> Self {
        if let Self::Answer { headers, .. } = &mut self {
            headers.push((name.to_owned(), value.to_owned()));
        }
        self
    }
}

/// An intercept, the requests it matches, and how many more.
struct InterceptRule {
    part: String,
    intercept: Intercept,
    left: usize,
}

#[derive(Default)]
struct ProxyShared {
    behind: Option<SocketAddr>,
    rules: Mutex<Vec<InterceptRule>>,
    /// Fixed responses, by part of the request line.
    fixed_responses: Mutex<Vec<(String, Intercept)>>,
    lifted: Condvar,
    request_lines: Mutex<Vec<String>>,
    shown: Mutex<Vec<(String, Option<String>)>>,
    tokens: Mutex<Option<TokenService>>,
    over: AtomicBool,
}

/// The proxy.
pub struct RegistryProxy {
    shared: Arc<ProxyShared>,
    at: SocketAddr,
    listens: Option<JoinHandle<()>>,
}

impl RegistryProxy {
    /// In front of a server that speaks HTTP without TLS.
    #[must_use]
    pub fn in_front_of(server: SocketAddr) -> Self {
        Self::start(Some(server))
    }

    /// Without a server behind it: other requests get a 404.
    #[must_use]
    pub fn standalone() -> Self {
        Self::start(None)
    }

    fn start(behind: Option<SocketAddr>) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
        let at = listener.local_addr().expect("it is bound");
        let shared = Arc::new(ProxyShared {
            behind,
            ..ProxyShared::default()
        });
        let known = Arc::clone(&shared);
        let listens = std::thread::spawn(move || {
            for client in listener.incoming() {
                if known.over.load(Ordering::SeqCst) {
                    return;
                }
                let Ok(client) = client else { continue };
                let known = Arc::clone(&known);
                std::thread::spawn(move || serve(client, &known));
            }
        });
        Self {
            shared,
            at,
            listens: Some(listens),
        }
    }

    /// URL of the proxy.
    #[must_use]
    pub fn url(&self) -> String {
        format!("http://{}", self.at)
    }

    /// Intercepts all requests whose first line contains this part.
    pub fn when(&self, part: &str, intercept: Intercept) {
        self.times(usize::MAX, part, intercept);
    }

    /// Intercepts the next `left` requests whose first line contains this part.
    pub fn times(&self, left: usize, part: &str, intercept: Intercept) {
        let part = part.to_owned();
        lock(&self.shared.rules).insert(
            0,
            InterceptRule {
                part,
                intercept,
                left,
            },
        );
    }

    /// Sets the fixed response to requests whose first line contains this part; removes it if there is no
    /// response.
    pub fn respond(&self, part: &str, answer: Option<Intercept>) {
        let mut fixed_responses = lock(&self.shared.fixed_responses);
        fixed_responses.retain(|(known, _)| known != part);
        fixed_responses.extend(answer.map(|it| (part.to_owned(), it)));
    }

    /// Removes all intercepts, and releases held responses.
    pub fn reset(&self) {
        lock(&self.shared.rules).clear();
        self.shared.lifted.notify_all();
    }

    /// Requests since the last call: methods and targets, in order.
    #[must_use]
    pub fn requests(&self) -> Vec<String> {
        std::mem::take(&mut *lock(&self.shared.request_lines))
    }

    /// Authorization headers of all requests so far, with method and target.
    #[must_use]
    pub fn authorizations(&self) -> Vec<(String, Option<String>)> {
        lock(&self.shared.shown).clone()
    }

    /// Requires tokens, which are issued for this user and password.
    pub fn demand_tokens(&self, user: &str, password: &str) {
        *lock(&self.shared.tokens) = Some(TokenService::new(self.at, user, password));
    }

    /// Revokes all issued tokens.
    pub fn forget_tokens(&self) {
        if let Some(tokens) = &mut *lock(&self.shared.tokens) {
            tokens.forget();
        }
    }
}

impl Drop for RegistryProxy {
    fn drop(&mut self) {
        self.shared.over.store(true, Ordering::SeqCst);
        self.reset();
        // The listener notices the end with the next connection.
        drop(TcpStream::connect(self.at));
        if let Some(listens) = self.listens.take() {
            drop(listens.join());
        }
    }
}

fn serve(mut client: TcpStream, shared: &ProxyShared) {
    let Some(request) = receive(&mut client) else {
        return;
    };
    let line = format!("{} {}", request.method, request.target);
    lock(&shared.request_lines).push(line.clone());
    let proof = request.header("authorization").map(str::to_owned);
    lock(&shared.shown).push((line.clone(), proof));
    let is_head = request.method == "HEAD";
    let intercept = intercept_for(shared, &line);
    if let Some(Intercept::Cut) = intercept {
        return;
    }
    if let Some(Intercept::Hold) = intercept {
        let rules = lock(&shared.rules);
        let held = |rules: &mut Vec<InterceptRule>| rules.iter().any(|it| line.contains(&it.part));
        drop(shared.lifted.wait_while(rules, held));
    }
    let answer = match intercept {
        Some(Intercept::Answer {
            status,
            ref headers,
            ref body,
        }) => Some(HttpResponse {
            status,
            headers: headers.clone(),
            body: body.clone().into_bytes(),
        }),
        Some(_) | None => admitted(shared, &request),
    };
    let Some(mut answer) = answer else { return };
    let mut send = answer.body.len();
    match intercept {
        Some(Intercept::BreakOff(bytes)) => send = send.min(bytes),
        Some(Intercept::Truncate(bytes)) => {
            answer.body.truncate(bytes);
            send = answer.body.len();
        }
        Some(_) | None => {}
    }
    // A closed client connection is not an error.
    let _ = reply(&mut client, &answer, send, is_head);
}

/// Response of the server behind the proxy, if the request is authorized.
fn admitted(shared: &ProxyShared, request: &HttpRequest) -> Option<HttpResponse> {
    if let Some(tokens) = &mut *lock(&shared.tokens)
        && let Some(answer) = tokens.answer(request)
    {
        return Some(answer);
    }
    let Some(behind) = shared.behind else {
        return Some(HttpResponse {
            status: 404,
            ..HttpResponse::default()
        });
    };
    let mut request = request.clone();
    let ours = ["connection", "content-length", "authorization"];
    let is_ours = |name: &str| ours.iter().any(|it| name.eq_ignore_ascii_case(it));
    request.headers.retain(|(name, _)| !is_ours(name));
    request.send(behind).ok()
}

fn intercept_for(shared: &ProxyShared, line: &str) -> Option<Intercept> {
    let mut rules = lock(&shared.rules);
    let rule = rules
        .iter_mut()
        .find(|it| it.left > 0 && line.contains(&it.part));
    if let Some(rule) = rule {
        if rule.left != usize::MAX {
            rule.left -= 1;
        }
        return Some(rule.intercept.clone());
    }
    let fixed_responses = lock(&shared.fixed_responses);
    let fixed = fixed_responses.iter().find(|(part, _)| line.contains(part));
    fixed.map(|(_, intercept)| intercept.clone())
}

fn receive(client: &mut TcpStream) -> Option<HttpRequest> {
    let mut bytes = Vec::new();
    let mut piece = [0; 4096];
    let end = loop {
        if let Some(end) = bytes.windows(4).position(|it| it == b"\r\n\r\n") {
            break end;
        }
        let read = client.read(&mut piece).ok().filter(|it| *it > 0)?;
        bytes.extend_from_slice(&piece[..read]);
    };
    let (first, headers) = read_head(&bytes[..end])?;
    let mut words = first.split(' ');
    let mut request = HttpRequest {
        method: words.next()?.to_owned(),
        target: words.next()?.to_owned(),
        headers,
        body: bytes[end + 4..].to_vec(),
    };
    let length = request.header("content-length").map_or(Ok(0), str::parse);
    let length: usize = length.ok()?;
    while request.body.len() < length {
        let read = client.read(&mut piece).ok().filter(|it| *it > 0)?;
        request.body.extend_from_slice(&piece[..read]);
    }
    Some(request)
}

fn reply(
    client: &mut TcpStream,
    answer: &HttpResponse,
    send: usize,
    is_head: bool,
) -> std::io::Result<()> {
    let mut text = format!("HTTP/1.1 {} -\r\nConnection: close\r\n", answer.status);
    let ours = ["connection", "transfer-encoding"];
    for (name, value) in &answer.headers {
        let is_length = name.eq_ignore_ascii_case("content-length");
        let skipped =
            ours.iter().any(|it| name.eq_ignore_ascii_case(it)) || (is_length && !is_head);
        if !skipped {
            text.push_str(&format!("{name}: {value}\r\n"));
        }
    }
    if !is_head && answer.status != 304 {
        text.push_str(&format!("Content-Length: {}\r\n", answer.body.len()));
    }
    text.push_str("\r\n");
    client.write_all(text.as_bytes())?;
    if !is_head {
        client.write_all(&answer.body[..send])?;
    }
    client.flush()
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
