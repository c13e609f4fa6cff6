//! Writes the files of a bundle as one layer: a tar whose bytes depend on the files only.
//!
//! The layer is not compressed: the output of a compressor may change with its version, which would change the
//! digest of an unchanged bundle.

use super::{PACKED_BYTES_MAX, PackError, io};
use crate::folder::{self, EntryKind};
use crate::manifest::{Entrypoint, Manifest};
use std::fs::File;
use std::path::Path;
use tar::{Builder, EntryType, Header};

/// Path of the bundle's folder in its image.
pub(super) const PLACE: &str = "opt/bundle";

/// Path at which images with Ansible expect playbooks.
const PROJECT: &str = "opt/apb/project";

/// Path at which they expect roles.
const ROLES: &str = "opt/ansible/roles";

/// Command that starts the script of an action.
pub(super) const DISPATCHER: &str = "opt/bundle-entrypoint";

/// Exit code 8 means that the action does not exist.
const DISPATCH: &str = "#!/bin/sh\n\
    # ACTION --extra-vars @FILE: starts the script of the action.\n\
    script=/opt/bundle/actions/$1\n\
    [ -x \"$script\" ] || exit 8\n\
    exec \"$script\" \"$@\"\n";

/// Builds the layer of a bundle.
pub(super) fn of(folder: &Path, manifest: &Manifest) -> Result<Vec<u8>, PackError> {
    let mut archive = Layer::new();
    let mut bytes = 0;
    for entry in folder::entries(folder)? {
        let path = place(&entry.path, manifest);
        match &entry.kind {
            EntryKind::Folder => archive.folder(&path)?,
            EntryKind::File {
                bytes: size,
                executable,
                ..
            } => {
                bytes += size;
                if bytes > PACKED_BYTES_MAX {
                    let reason = format!(
                        "the folder has more than {} MiB: keep only what the bundle needs in it",
                        PACKED_BYTES_MAX >> 20
                    );
                    return Err(PackError::Refused(reason));
                }
                let source = folder.join(&entry.path);
                archive.copy(&path, &source, *size, *executable)?;
            }
            EntryKind::Link { target } if !entry.leads_out() => {
                archive.link(&path, target)?;
            }
            EntryKind::Link { .. } | EntryKind::Strange => {
                let path = &entry.path;
                let reason = format!("{path} cannot be packed: it leads out, or is no file");
                return Err(PackError::Refused(reason));
            }
        }
    }
    if manifest.entry == Entrypoint::Scripts {
        archive.file(DISPATCHER, DISPATCH.as_bytes(), true)?;
    }
    archive.finish()
}

/// Path of a folder entry in the image.
fn place(path: &str, manifest: &Manifest) -> String {
    let moved = |from: &str, to: &str| {
        let rest = path.strip_prefix(from)?;
        (rest.is_empty() || rest.starts_with('/')).then(|| format!("{to}{rest}"))
    };
    let playbooks = match manifest.entry {
        Entrypoint::Playbooks => moved("playbooks", PROJECT).or_else(|| moved("roles", ROLES)),
        Entrypoint::Scripts | Entrypoint::Program(_) => None,
    };
    playbooks.unwrap_or_else(|| format!("{PLACE}/{path}"))
}

/// A tar without times, users or other data of the host.
struct Layer {
    archive: Builder<Vec<u8>>,
    folders: Vec<String>,
}

impl Layer {
    fn new() -> Self {
        Self {
            archive: Builder::new(Vec::new()),
            folders: Vec::new(),
        }
    }

    /// Adds the missing parent folders of a path.
    fn above(&mut self, path: &str) -> Result<(), PackError> {
        for (at, _) in path.match_indices('/') {
            let above = &path[..at];
            if !self.folders.iter().any(|there| there == above) {
                self.add_folder(above)?;
            }
        }
        Ok(())
    }

    fn folder(&mut self, path: &str) -> Result<(), PackError> {
        self.above(path)?;
        match self.folders.iter().any(|there| there == path) {
            true => Ok(()),
            false => self.add_folder(path),
        }
    }

    fn add_folder(&mut self, path: &str) -> Result<(), PackError> {
        self.folders.push(path.to_owned());
        let mut header = header(EntryType::Directory, 0, 0o755);
        let name = format!("{path}/");
        let added = self.archive.append_data(&mut header, name, &[][..]);
        added.map_err(io(format!("packing {path}")))
    }

    fn copy(
        &mut self,
        path: &str,
        source: &Path,
        bytes: u64,
        executable: bool,
    ) -> Result<(), PackError> {
        self.above(path)?;
        let what = || format!("packing {}", source.display());
        let file = File::open(source).map_err(io(what()))?;
        let mut header = header(EntryType::Regular, bytes, mode(executable));
        // A file that grows meanwhile is cut at its listed size; one that shrinks is an error.
        let mut reader = ExactRead { file, left: bytes };
        let added = self.archive.append_data(&mut header, path, &mut reader);
        added.map_err(io(what()))
    }

    fn file(&mut self, path: &str, content: &[u8], executable: bool) -> Result<(), PackError> {
        self.above(path)?;
        let bytes = content.len() as u64;
        let mut header = header(EntryType::Regular, bytes, mode(executable));
        let added = self.archive.append_data(&mut header, path, content);
        added.map_err(io(format!("packing {path}")))
    }

    fn link(&mut self, path: &str, target: &Path) -> Result<(), PackError> {
        self.above(path)?;
        let mut header = header(EntryType::Symlink, 0, 0o777);
        let added = self.archive.append_link(&mut header, path, target);
        added.map_err(io(format!("packing {path}")))
    }

    fn finish(self) -> Result<Vec<u8>, PackError> {
        self.archive.into_inner().map_err(io("packing the bundle"))
    }
}

fn mode(executable: bool) -> u32 {
    if executable { 0o755 } else { 0o644 }
}

fn header(kind: EntryType, bytes: u64, mode: u32) -> Header {
    let mut header = Header::new_gnu();
    header.set_entry_type(kind);
    header.set_size(bytes);
    header.set_mode(mode);
    header.set_mtime(0);
    header.set_uid(0);
    header.set_gid(0);
    header
}

/// Reads exactly `left` bytes of a file.
struct ExactRead {
    file: File,
    left: u64,
}

impl std::io::Read for ExactRead {
    fn read(&mut self, buffer: &mut [u8]) -> std::io::Result<usize> {
        let most = buffer
            .len()
            .min(usize::try_from(self.left).unwrap_or(usize::MAX));
        if most == 0 {
            return Ok(0);
        }
        let read = self.file.read(&mut buffer[..most])?;
        if read == 0 {
            return Err(std::io::ErrorKind::UnexpectedEof.into());
        }
        self.left -= read as u64;
        Ok(read)
    }
}
