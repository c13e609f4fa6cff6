//! A registry of thousands of images, and a bare loop that requests everything from it.

use super::{BoxError, manifest};
use std::ops::Range;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};
use sutler_servers::docker_registry::{Image, RegistryAccess, own};
use sutler_servers::{Demands, RegistryProxy, Server};

/// Number of concurrent requests: the default of the broker.
const AT_ONCE: usize = 8;

/// The registry.
pub(super) struct LargeRegistry {
    server: Server,
}

impl LargeRegistry {
    pub(super) fn open(images: usize, beside: bool) -> Result<Self, BoxError> {
        let Some(server) = own(Demands::default(), RegistryAccess::Open) else {
            return Err("docker-registry is not on this machine: install it".into());
        };
        // In production it has its own machine; here there may be only two processors.
        if !beside {
            server.lower_priority();
        }
        let registry = Self { server };
        registry.write_images(0..images, "first");
        Ok(registry)
    }

    fn write_images(&self, numbers: Range<usize>, version: &str) {
        for number in numbers {
            let image = Image::bundle(&manifest(number, version));
            let name = format!("org/bundle-{number:05}");
            self.server.write_image(&name, "latest", &image);
        }
    }

    pub(super) fn change(&self, numbers: Range<usize>) -> Result<(), BoxError> {
        self.write_images(numbers, "second");
        Ok(())
    }

    pub(super) fn url(&self) -> String {
        format!("http://{}", self.server.address())
    }

    /// A proxy to it that counts requests.
    pub(super) fn front(&self) -> RegistryProxy {
        RegistryProxy::in_front_of(self.server.address())
    }

    /// Runs the bare loop in a separate process, like the broker.
    pub(super) async fn bare_loop_elsewhere(&self, images: usize) -> Result<(), BoxError> {
        let mut command = Command::new(std::env::current_exe()?);
        command.args([
            "bare",
            "--url",
            &self.url(),
            "--images",
            &images.to_string(),
        ]);
        command.stdin(Stdio::null()).stdout(Stdio::null());
        let ended = tokio::task::spawn_blocking(move || command.status()).await??;
        match ended.success() {
            true => Ok(()),
            false => Err(format!("the bare loop ended: {ended}").into()),
        }
    }
}

/// The same requests as those of a refresh, and nothing else.
pub(super) async fn bare_loop(url: &str, images: usize) -> Result<Duration, BoxError> {
    use futures_util::StreamExt as _;
    let http = reqwest::Client::builder().no_proxy().build()?;
    let began = Instant::now();
    let mut names: Vec<String> = Vec::new();
    let mut page = Some(format!("{url}/v2/_catalog?n=1000"));
    while let Some(next) = page.take() {
        let answer = http.get(next).send().await?;
        let link = answer.headers().get("link").and_then(|it| it.to_str().ok());
        let link = link.and_then(|it| it.strip_prefix('<')?.split_once('>'));
        page = link.map(|(path, _)| format!("{url}{path}"));
        let listed: serde_json::Value = serde_json::from_slice(&answer.bytes().await?)?;
        let listed = listed["repositories"].as_array();
        let listed = listed.into_iter().flatten().filter_map(|it| it.as_str());
        names.extend(listed.map(str::to_owned));
    }
    let accept = "application/vnd.oci.image.manifest.v1+json";
    let reads = names.iter().map(async |name| {
        let url = format!("{url}/v2/{name}/manifests/latest");
        let answer = http.head(url).header("Accept", accept).send().await.ok()?;
        let digest = answer.headers().get("docker-content-digest")?;
        Some(digest.to_str().ok()?.to_owned())
    });
    let reads = futures_util::stream::iter(reads).buffer_unordered(AT_ONCE);
    let digests: Vec<Option<String>> = reads.collect().await;
    match digests.iter().flatten().count() == images {
        true => Ok(began.elapsed()),
        false => Err("the bare loop did not find everything".into()),
    }
}
