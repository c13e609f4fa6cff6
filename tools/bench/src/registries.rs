//! What a refresh of a large registry costs beside a bare loop of the same questions, in the same run.
//!
//! The registry is Debian's, with thousands of images laid into its folder. The bare loop lists it and asks for
//! every digest with the same client, as many at a time; a refresh does that and compares. What is measured is
//! in pairs, one after the other; the median of their ratios is told.

use std::collections::BTreeMap;
use std::error::Error;
use std::time::{Duration, Instant};
use sutler_registry::{
    Credentials, Digest, ImageRegistry, ImageSettings, Item, Names, Reach, State, Wanted, gather,
};
use sutler_servers::registry::{Entry, Image, own};
use sutler_servers::{Demands, Server};

/// How many questions are asked together.
const AT_ONCE: usize = 8;
/// The goal: a refresh with nothing changed, as a multiple of the bare loop.
const GOAL: f64 = 1.3;

/// How large, and how often.
#[derive(clap::Args, Clone)]
pub(crate) struct RegistryArgs {
    /// Images in the registry
    #[arg(long, default_value_t = 10_000)]
    images: usize,
    /// Images that change before the last refresh
    #[arg(long, default_value_t = 100)]
    changed: usize,
    /// Pairs of a bare loop and a refresh
    #[arg(long, default_value_t = 5)]
    pairs: usize,
}

/// Measures, and prints what came of it.
pub(crate) async fn measure(args: RegistryArgs) -> Result<(), Box<dyn Error>> {
    let Some(server) = own(Demands::default(), Entry::Open) else {
        return Err("docker-registry is not on this machine: install it".into());
    };
    let mut known = BTreeMap::new();
    for number in 0..args.images {
        let (name, digest) = lay(&server, number, "first")?;
        known.insert(name, digest);
    }
    let url = format!("http://{}", server.address());
    let registry = ImageRegistry::new(settings(&url))?;
    let mut ratios = Vec::new();
    let (mut bare, mut refreshes) = (Vec::new(), Vec::new());
    for pair in 0..=args.pairs {
        let before = bare_loop(&url, args.images).await?;
        let began = Instant::now();
        let counts = refresh(&registry, &known).await?;
        let after = began.elapsed();
        if counts != (args.images, 0) {
            return Err(format!("known and read: {counts:?}").into());
        }
        // The first pair warms everything up.
        if pair > 0 {
            ratios.push(after.as_secs_f64() / before.as_secs_f64());
            bare.push(before);
            refreshes.push(after);
        }
    }
    for number in 0..args.changed {
        lay(&server, number, "second")?;
    }
    let began = Instant::now();
    let counts = refresh(&registry, &known).await?;
    let changed = began.elapsed();
    let ratio = median(ratios);
    let met = if ratio <= GOAL { "met" } else { "MISSED" };
    let text = format!(
        "{} images, {} pairs\nbare loop           {:?}\nnothing changed     {:?}, {ratio:.2} of it ({GOAL} at most: {met})\n\
         {} changed         {changed:?}, read {}\nmost memory         {} MB\n",
        args.images,
        args.pairs,
        median(bare),
        median(refreshes),
        args.changed,
        counts.1,
        most_memory_mb()
    );
    std::io::Write::write_all(&mut std::io::stdout(), text.as_bytes())?;
    Ok(())
}

fn lay(server: &Server, number: usize, version: &str) -> Result<(String, Digest), Box<dyn Error>> {
    let name = format!("org/bundle-{number:05}");
    let text = format!(
        "name: bundle-{number}\ndescription: {version} {}\n",
        "x".repeat(2_000)
    );
    let laid = server.lay(&name, "latest", &Image::bundle(&text));
    Ok((name, Digest::parse(&laid.digest)?))
}

fn settings(url: &str) -> ImageSettings {
    ImageSettings {
        name: "large".to_owned(),
        url: url.to_owned(),
        pull_from: None,
        platform: None,
        names: Names::Catalog { org: None },
        wanted: Wanted::default(),
        credentials: Credentials::None,
        reach: Reach::default(),
    }
}

/// How many were known, and how many were read.
async fn refresh(
    registry: &ImageRegistry,
    known: &BTreeMap<String, Digest>,
) -> Result<(usize, usize), Box<dyn Error>> {
    let known = |item: &Item| known.get(&item.image).cloned();
    let found = gather(registry, &known, AT_ONCE).await?.found;
    let is_known = |state: &State| matches!(state, State::Known(_));
    let is_read = |state: &State| matches!(state, State::Read(_));
    let count = |is: fn(&State) -> bool| found.iter().filter(|it| is(&it.state)).count();
    Ok((count(is_known), count(is_read)))
}

/// The same questions, and nothing else.
async fn bare_loop(url: &str, images: usize) -> Result<Duration, Box<dyn Error>> {
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
        let listed = listed["repositories"]
            .as_array()
            .cloned()
            .unwrap_or_default();
        names.extend(
            listed
                .iter()
                .filter_map(|it| it.as_str().map(str::to_owned)),
        );
    }
    let accept = "application/vnd.oci.image.manifest.v1+json";
    let looks = names.iter().map(async |name| {
        let url = format!("{url}/v2/{name}/manifests/latest");
        let answer = http.head(url).header("Accept", accept).send().await.ok()?;
        let digest = answer.headers().get("docker-content-digest")?;
        Some(digest.to_str().ok()?.to_owned())
    });
    let looks = futures_util::stream::iter(looks).buffer_unordered(AT_ONCE);
    let digests: Vec<Option<String>> = looks.collect().await;
    match digests.iter().flatten().count() == images {
        true => Ok(began.elapsed()),
        false => Err("the bare loop did not find everything".into()),
    }
}

fn median<T: PartialOrd + Copy>(mut values: Vec<T>) -> T {
    values.sort_by(|a, b| a.partial_cmp(b).unwrap_or(std::cmp::Ordering::Equal));
    values[values.len() / 2]
}

/// The most memory that this process had.
fn most_memory_mb() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find_map(|it| it.strip_prefix("VmHWM:"));
    let kilobytes = line.and_then(|it| it.trim().split(' ').next()?.parse::<u64>().ok());
    kilobytes.unwrap_or_default() / 1024
}
