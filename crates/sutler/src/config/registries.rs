//! Opens registries from their configuration: reads secrets and files, sends no request.

use super::model::{RegistryAuth, RegistryConfig, RegistryKind};
use super::secret::EnvLookup;
use super::value_types::FilePath;
use secrecy::{ExposeSecret as _, SecretString};
use serde::Deserialize;
use std::io::Read as _;
use std::path::Path;
use std::sync::Arc;
use sutler_registry::{
    Credentials, HUB_HOST, HUB_REGISTRY_URL, HUB_URL, HttpSettings, ImageFilter, ImageRegistry,
    ImageSelection, ImageSettings, IndexRegistry, IndexSettings, ListingMethod, OpenShiftRegistry,
    OpenShiftSettings, QUAY_URL, Registry,
};

/// Maximum size of a file that a block names, in bytes.
const FILE_BYTES_MAX: u64 = 1024 * 1024;

/// Names of Docker Hub that do not list.
const HUB_NAMES: [&str; 4] = [
    "docker.io",
    "index.docker.io",
    "registry-1.docker.io",
    "registry.hub.docker.com",
];

/// Opens a registry.
///
/// # Errors
/// The block cannot be used; the text suggests a fix, and has no secret.
pub fn open_registry(
    block: &RegistryConfig,
    variable: &EnvLookup<'_>,
) -> Result<Arc<dyn Registry>, String> {
    if block.skip_verify_tls {
        return Err(
            "has `skip_verify_tls`, which would give passwords to anybody in between: name the registry's \
             authority under `ca`"
                .to_owned(),
        );
    }
    let common = RegistryOptions {
        filter: filter(block)?,
        credentials: credentials(block, variable)?,
        http: http(block, variable)?,
    };
    match block.kind {
        RegistryKind::Oci | RegistryKind::Dockerhub | RegistryKind::Quay => images(block, common),
        RegistryKind::Openshift => {
            if block.org.is_some() || !block.images.is_empty() {
                return Err(
                    "has `org` or `images`, and image streams have none of that: if it is a registry of images, as \
                     `openshift` was for Automation Broker, write `type: oci`"
                        .to_owned(),
                );
            }
            let api = "`url`: the API server, such as https://kubernetes.default.svc";
            let registry = OpenShiftRegistry::new(OpenShiftSettings {
                name: block.name.clone(),
                url: block.url.clone().ok_or_else(|| format!("needs {api}"))?,
                namespaces: block.namespaces.clone(),
                filter: common.filter,
                credentials: common.credentials,
                http: common.http,
            })?;
            Ok(Arc::new(registry))
        }
        RegistryKind::Index => {
            let registry = IndexRegistry::new(IndexSettings {
                name: block.name.clone(),
                url: needed(block.url.as_ref(), "url")?,
                filter: common.filter,
                credentials: common.credentials,
                http: common.http,
            })?;
            Ok(Arc::new(registry))
        }
    }
}

/// Options of all kinds of registries.
struct RegistryOptions {
    filter: ImageFilter,
    credentials: Credentials,
    http: HttpSettings,
}

fn images(block: &RegistryConfig, common: RegistryOptions) -> Result<Arc<dyn Registry>, String> {
    let given = |url: &Option<String>, own: &str| url.clone().unwrap_or_else(|| own.to_owned());
    let listed = (!block.images.is_empty()).then(|| ListingMethod::Images(block.images.clone()));
    let org = || needed(block.org.as_ref(), "org");
    let (url, pull_from, names) = match block.kind {
        RegistryKind::Dockerhub => {
            let url = given(&block.url, HUB_URL);
            // Automation Broker never used these URLs, which its users wrote here.
            let is_hub = HUB_NAMES.contains(&url.trim_start_matches("https://"));
            let url = match is_hub {
                true => HUB_URL.to_owned(),
                false => url,
            };
            let names = match listed {
                Some(listed) => listed,
                None => ListingMethod::DockerHub { url, org: org()? },
            };
            let registry = given(&block.registry_url, HUB_REGISTRY_URL);
            (registry, Some(HUB_HOST.to_owned()), names)
        }
        RegistryKind::Quay => {
            let url = given(&block.url, QUAY_URL);
            let registry = given(&block.registry_url, &url);
            let names = match listed {
                Some(listed) => listed,
                None => ListingMethod::Quay { url, org: org()? },
            };
            (registry, None, names)
        }
        RegistryKind::Oci | RegistryKind::Openshift | RegistryKind::Index => {
            let org = block.org.clone();
            let names = listed.unwrap_or(ListingMethod::Catalog { org });
            (needed(block.url.as_ref(), "url")?, None, names)
        }
    };
    let registry = ImageRegistry::new(ImageSettings {
        name: block.name.clone(),
        url,
        pull_from: block.pull_from.clone().or(pull_from),
        platform: block.platform.clone(),
        listing: names,
        filter: common.filter,
        credentials: common.credentials,
        http: common.http,
    })?;
    Ok(Arc::new(registry))
}

fn needed(value: Option<&String>, key: &str) -> Result<String, String> {
    let value = value.filter(|it| !it.is_empty()).cloned();
    value.ok_or_else(|| format!("needs `{key}` for a registry of its `type`"))
}

fn filter(block: &RegistryConfig) -> Result<ImageFilter, String> {
    ImageFilter::new(&ImageSelection {
        allow: block.white_list.clone(),
        deny: block.black_list.clone(),
        default_tag: block.tag.default.clone(),
        named: block.tag.named.clone(),
    })
}

fn http(block: &RegistryConfig, variable: &EnvLookup<'_>) -> Result<HttpSettings, String> {
    let proxy = block.proxy.as_ref().map(|it| it.reveal(variable));
    let proxy = proxy.transpose();
    let ca_certificates = block
        .ca
        .as_ref()
        .map(|FilePath(path)| read(path))
        .transpose()?;
    Ok(HttpSettings {
        ca_certificates: ca_certificates.map(String::into_bytes),
        proxy: proxy.map_err(|why| format!("has a `proxy` that {why}"))?,
        response_timeout: block.answer_within.0,
        ..HttpSettings::default()
    })
}

/// A file of credentials, as Automation Broker has them.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct RegistryCredentials {
    username: Option<String>,
    password: Option<SecretString>,
    token: Option<SecretString>,
}

fn credentials(block: &RegistryConfig, variable: &EnvLookup<'_>) -> Result<Credentials, String> {
    let login = match (block.auth_type, &block.auth_name) {
        (RegistryAuth::Config, None) => {
            let reveal = |key: &str, secret: &Option<super::SecretSource>| {
                let found = secret.as_ref().map(|it| it.reveal(variable)).transpose();
                found.map_err(|why| format!("has a `{key}` that {why}"))
            };
            RegistryCredentials {
                username: block.user.clone(),
                password: reveal("pass", &block.pass)?,
                token: reveal("token", &block.token)?,
            }
        }
        (RegistryAuth::File, Some(FilePath(path))) => login_in(path)?,
        (RegistryAuth::File, None) => {
            return Err("has `auth_type: file` and no file: name it under `auth_name`".to_owned());
        }
        (RegistryAuth::Config, Some(_)) => {
            return Err(
                "has `auth_name` without `auth_type: file`: add that, or remove it".to_owned(),
            );
        }
    };
    match (login.username, login.password, login.token) {
        (None, None, None) => Ok(Credentials::None),
        (Some(user), Some(password), None) if !user.contains(':') => {
            Ok(Credentials::Basic { user, password })
        }
        (None, None, Some(token)) => Ok(Credentials::Token(token)),
        (Some(_), Some(_), None) => Err("has a user with a colon in it: use another user".to_owned()),
        (_, _, _) => Err(
            "needs a user and a password, or a token, or nothing of it: give both, or remove what is left over"
                .to_owned(),
        ),
    }
}

fn login_in(path: &Path) -> Result<RegistryCredentials, String> {
    let shown = path.display();
    // The content must not be quoted: only its place is reported.
    let wrong = || {
        format!(
            "names {shown}, which is no file of credentials: write `username` and `password`, or `token`, in YAML"
        )
    };
    let text = SecretString::from(read(path)?);
    let documents = sutler_yaml::parse(text.expose_secret()).map_err(|_| wrong())?;
    let [document] = documents.as_slice() else {
        return Err(wrong());
    };
    let login = sutler_yaml::read::<RegistryCredentials>(document);
    match (login.value, login.faults.is_empty()) {
        (Some(login), true) => Ok(login),
        (Some(_) | None, _) => Err(wrong()),
    }
}

fn read(path: &Path) -> Result<String, String> {
    let shown = path.display();
    let unreadable = |error| format!("names {shown}, which cannot be read: {error}");
    let file = std::fs::File::open(path).map_err(unreadable)?;
    let mut text = String::new();
    file.take(FILE_BYTES_MAX + 1)
        .read_to_string(&mut text)
        .map_err(unreadable)?;
    match text.len() as u64 > FILE_BYTES_MAX {
        true => Err(format!(
            "names {shown}, which has more than {FILE_BYTES_MAX} bytes: is it the right file?"
        )),
        false => Ok(text),
    }
}
