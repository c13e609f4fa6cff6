//! Token authentication of registries: tokens are issued for a scope and a password, and required.

use crate::http::{HttpRequest, HttpResponse};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use std::collections::HashMap;
use std::net::SocketAddr;

/// A token service.
pub(super) struct TokenService {
    realm: String,
    /// Authorization header that is required for a token.
    proof: String,
    /// Scopes, by token.
    issued: HashMap<String, String>,
    count: usize,
}

impl TokenService {
    pub(super) fn new(at: SocketAddr, user: &str, password: &str) -> Self {
        let login = STANDARD.encode(format!("{user}:{password}"));
        Self {
            realm: format!("http://{at}/token"),
            proof: format!("Basic {login}"),
            issued: HashMap::new(),
            count: 0,
        }
    }

    pub(super) fn forget(&mut self) {
        self.issued.clear();
    }

    /// Responds with a token or a challenge; `None` if the request is authorized.
    pub(super) fn answer(&mut self, request: &HttpRequest) -> Option<HttpResponse> {
        let shown = request.header("authorization").unwrap_or_default();
        let (path, query) = request
            .target
            .split_once('?')
            .unwrap_or((&request.target, ""));
        if path == "/token" {
            return Some(match shown == self.proof {
                true => self.give(query),
                false => refusal(401, ""),
            });
        }
        let scope = scope_of(path)?;
        let token = shown.strip_prefix("Bearer ").unwrap_or_default();
        if self.issued.get(token) == Some(&scope) {
            return None;
        }
        let realm = &self.realm;
        Some(refusal(
            401,
            &format!(r#"Bearer realm="{realm}",service="tests",scope="{scope}""#),
        ))
    }

    fn give(&mut self, query: &str) -> HttpResponse {
        let mut pairs = query.split('&').filter_map(|it| it.split_once('='));
        let scope = pairs.find(|(name, _)| *name == "scope");
        let scope = scope.map(|(_, value)| decoded(value)).unwrap_or_default();
        self.count += 1;
        let token = format!("token-{}-of-tests", self.count);
        self.issued.insert(token.clone(), scope);
        HttpResponse {
            status: 200,
            headers: vec![("Content-Type".to_owned(), "application/json".to_owned())],
            body: format!(r#"{{"token":"{token}","expires_in":300}}"#).into_bytes(),
        }
    }
}

fn refusal(status: u16, wanted: &str) -> HttpResponse {
    let name = "WWW-Authenticate".to_owned();
    HttpResponse {
        status,
        headers: vec![(name, wanted.to_owned())],
        body: br#"{"errors":[{"code":"UNAUTHORIZED"}]}"#.to_vec(),
    }
}

/// Scope of a path of a registry.
fn scope_of(path: &str) -> Option<String> {
    let rest = path.strip_prefix("/v2/")?;
    if rest == "_catalog" {
        return Some("registry:catalog:*".to_owned());
    }
    let kinds = ["/manifests/", "/blobs/", "/tags/"];
    let image = kinds.iter().find_map(|kind| Some(rest.split_once(kind)?.0));
    Some(format!("repository:{}:pull", image.unwrap_or_default()))
}

fn decoded(text: &str) -> String {
    let mut bytes = Vec::new();
    let mut rest = text.as_bytes();
    while let Some((first, after)) = rest.split_first() {
        let number = after.get(..2).and_then(|it| std::str::from_utf8(it).ok());
        let number = number.and_then(|it| u8::from_str_radix(it, 16).ok());
        match (first, number) {
            (b'%', Some(byte)) => {
                bytes.push(byte);
                rest = &after[2..];
            }
            _ => {
                bytes.push(*first);
                rest = after;
            }
        }
    }
    String::from_utf8_lossy(&bytes).into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn scopes_are_those_of_paths() {
        for (path, scope) in [
            ("/v2/_catalog", "registry:catalog:*"),
            ("/v2/a/b/manifests/latest", "repository:a/b:pull"),
            ("/v2/a/blobs/sha256:0", "repository:a:pull"),
        ] {
            assert_eq!(scope_of(path).as_deref(), Some(scope));
        }
        assert_eq!(decoded("repository%3Aa%2Fb%3Apull"), "repository:a/b:pull");
    }
}
