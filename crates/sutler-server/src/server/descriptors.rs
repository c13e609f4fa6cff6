//! Limit of open files of the process.

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

/// Raises the process's soft limit of open files to its hard limit: connections need it, and a soft limit of 1,024 is
/// still usual. Returns the limit in force; `None` if there is none. Call it at the start of a program, not from a
/// library.
pub fn raise_descriptor_limit() -> Option<u64> {
    let Rlimit { current, maximum } = getrlimit(Resource::Nofile);
    let raised = Rlimit {
        current: maximum,
        maximum,
    };
    match setrlimit(Resource::Nofile, raised) {
        Ok(()) => maximum,
        Err(error) => {
            tracing::warn!(%error, "the limit of open files stays as it is");
            current
        }
    }
}

#[cfg(test)]
mod tests {
    use super::raise_descriptor_limit;
    use rustix::process::{Resource, getrlimit};

    #[test]
    fn the_soft_limit_becomes_the_hard_one() {
        let now = raise_descriptor_limit();
        let limit = getrlimit(Resource::Nofile);
        assert_eq!((now, limit.current), (limit.maximum, limit.maximum));
    }
}
