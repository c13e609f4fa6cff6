//! `sutler bundle pack`: writes an image to a file. `sutler-bundle` builds it.

use super::FolderArgs;
use crate::commands::CommandResult;
use clap::Args;
use std::fs::{self, File};
use std::io::{BufWriter, Write as _};
use std::path::{Path, PathBuf};
use sutler_bundle::{PackError, PackOptions, PackedImage, pack};

#[derive(Args)]
pub(super) struct PackArgs {
    #[command(flatten)]
    bundle: FolderArgs,
    /// The file to write: an OCI image layout in a tar, as `podman load` and `skopeo` read it
    #[arg(long, short, value_name = "FILE")]
    output: PathBuf,
    /// The base image: an OCI image layout, as a folder or a tar
    #[arg(long, value_name = "LAYOUT")]
    base: Option<PathBuf>,
    /// The name of the image [default: NAME:VERSION of the bundle]
    #[arg(long, value_name = "NAME:TAG")]
    tag: Option<String>,
    /// The processor architecture
    #[arg(long, value_name = "ARCH", default_value = "amd64")]
    arch: String,
}

pub(super) fn run(args: &PackArgs) -> CommandResult {
    let options = PackOptions {
        base: args.base.clone(),
        reference: args.tag.clone(),
        architecture: args.arch.clone(),
    };
    // Written under a temporary name: an incomplete image must not look complete.
    let mut aside = args.output.clone().into_os_string();
    aside.push(".new");
    let aside = PathBuf::from(aside);
    let written = write(&args.bundle.folder, &options, &aside);
    let packed = match written {
        Ok(packed) => packed,
        Err(fault) => {
            let _ = fs::remove_file(&aside);
            return Err(fault);
        }
    };
    fs::rename(&aside, &args.output)?;
    let PackedImage {
        digest,
        reference,
        layers,
        bytes,
    } = packed;
    let plural = if layers == 1 { "layer" } else { "layers" };
    let text = format!("{reference}: {layers} {plural}, {bytes} bytes\n{digest}\n");
    std::io::stdout().write_all(text.as_bytes())?;
    Ok(())
}

fn write(
    folder: &Path,
    options: &PackOptions,
    aside: &Path,
) -> Result<PackedImage, Box<dyn std::error::Error>> {
    let opened = File::create(aside).map_err(|source| PackError::Io {
        what: format!("writing {}", aside.display()),
        source,
    })?;
    let mut out = BufWriter::new(opened);
    let packed = pack(folder, options, &mut out)?;
    out.flush()?;
    out.get_ref().sync_all()?;
    Ok(packed)
}
