//! Reads an icon from the directory of the catalog file, as a data URL.
//!
//! Reads no file outside that directory, no large file, and no file whose content does not match its extension:
//! the icon is served to every reader of the catalog.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use std::io::Read;
use std::path::{Component, Path};

/// Maximum size of an icon, in bytes. It is part of every response to `GET /v2/catalog`.
const ICON_BYTES_MAX: u64 = 256 * 1024;

/// Maximum offset of `<svg` in a file, in bytes: after a declaration, a comment, a licence.
const SVG_HEAD_BYTES: usize = 4 * 1024;

/// Result of reading an icon.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Icon {
    /// A URL for `imageUrl`.
    Url(String),
    /// There is no directory to read from.
    NoDirectory,
    /// It cannot be served.
    Refused(String),
}

/// Reads the icon with this name from this directory. A URL is returned unchanged.
pub(super) fn find(resource: &str, directory: Option<&Path>) -> Icon {
    let resource = resource.trim();
    let is_url = |scheme: &str| {
        resource
            .get(..scheme.len())
            .is_some_and(|head| head.eq_ignore_ascii_case(scheme))
    };
    if ["http://", "https://", "data:image/"]
        .into_iter()
        .any(is_url)
    {
        return Icon::Url(resource.to_owned());
    }
    let Some(directory) = directory else {
        return Icon::NoDirectory;
    };
    match read(resource, directory) {
        Ok((media_type, bytes)) => {
            let encoded = STANDARD.encode(bytes);
            Icon::Url(format!("data:{media_type};base64,{encoded}"))
        }
        Err(reason) => Icon::Refused(reason),
    }
}

fn read(resource: &str, directory: &Path) -> Result<(&'static str, Vec<u8>), String> {
    let name = Path::new(resource);
    let stays_inside =
        |part: Component<'_>| matches!(part, Component::Normal(_) | Component::CurDir);
    if resource.is_empty() || !name.components().all(stays_inside) {
        return Err("must name a file in or below the directory of the catalog".to_owned());
    }
    let format = Format::of_name(name)?;
    let unreadable = |error: std::io::Error| format!("cannot be read: {error}");
    let directory = directory.canonicalize().map_err(unreadable)?;
    // A link may point elsewhere, so the real path is checked.
    let path = directory.join(name).canonicalize().map_err(unreadable)?;
    if !path.starts_with(&directory) {
        return Err("must be a file in or below the directory of the catalog".to_owned());
    }
    let file = std::fs::File::open(&path).map_err(unreadable)?;
    let metadata = file.metadata().map_err(unreadable)?;
    if !metadata.is_file() {
        return Err("must be a file".to_owned());
    }
    let mut bytes = Vec::new();
    // One byte more than allowed is enough to detect it; the file may grow while it is read.
    let mut bounded = file.take(ICON_BYTES_MAX + 1);
    bounded.read_to_end(&mut bytes).map_err(unreadable)?;
    if bytes.len() as u64 > ICON_BYTES_MAX {
        return Err(format!("must not be larger than {ICON_BYTES_MAX} bytes"));
    }
    if !format.is_in(&bytes) {
        let reason = format!(
            "must be what its name says, but is no {}",
            format.media_type()
        );
        return Err(reason);
    }
    Ok((format.media_type(), bytes))
}

#[derive(Clone, Copy)]
enum Format {
    Png,
    Jpeg,
    Gif,
    Svg,
    Webp,
}

impl Format {
    fn of_name(name: &Path) -> Result<Self, String> {
        let extension = name.extension().and_then(|extension| extension.to_str());
        match extension.map(str::to_ascii_lowercase).as_deref() {
            Some("png") => Ok(Self::Png),
            Some("jpg" | "jpeg") => Ok(Self::Jpeg),
            Some("gif") => Ok(Self::Gif),
            Some("svg") => Ok(Self::Svg),
            Some("webp") => Ok(Self::Webp),
            Some(_) | None => {
                Err("must be an image: .png, .jpg, .jpeg, .gif, .svg or .webp".to_owned())
            }
        }
    }

    fn media_type(self) -> &'static str {
        match self {
            Self::Png => "image/png",
            Self::Jpeg => "image/jpeg",
            Self::Gif => "image/gif",
            Self::Svg => "image/svg+xml",
            Self::Webp => "image/webp",
        }
    }

    /// Whether the bytes have the signature of this format.
    fn is_in(self, bytes: &[u8]) -> bool {
        match self {
            Self::Png => bytes.starts_with(b"\x89PNG\r\n\x1a\n"),
            Self::Jpeg => bytes.starts_with(b"\xff\xd8\xff"),
            Self::Gif => bytes.starts_with(b"GIF87a") || bytes.starts_with(b"GIF89a"),
            Self::Webp => bytes.starts_with(b"RIFF") && bytes.get(8..12) == Some(b"WEBP"),
            Self::Svg => {
                let Ok(text) = std::str::from_utf8(bytes) else {
                    return false;
                };
                let text = text.trim_start_matches('\u{feff}').trim_start();
                let head = &text.as_bytes()[..text.len().min(SVG_HEAD_BYTES)];
                head.starts_with(b"<") && head.windows(4).any(|window| window == b"<svg")
            }
        }
    }
}
