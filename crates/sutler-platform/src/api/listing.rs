//! Pages of documents: by an index where there is one, with a bounded scan for what no index selects.
//!
//! A page can be short, or even empty, and still have a next one: a scan ends at a bound, and documents of a newer version
//! are left out.

use super::page_cursor::cursor;
use super::problem::Problem;
use super::request_inputs::{RequestInputs, unknown_cursor};
use super::views::ListPage;
use crate::platform_records::PlatformRecords;
use crate::records::{TypedRecord, scoped_value};
use sutler_journal::{Key, Kind, List, Position};

/// Documents that are read for one page at most.
const SCAN_MAX: usize = 1_000;

/// All documents of a kind in a namespace that have a term, in the order of its values.
pub(super) fn of_namespace(
    records: &PlatformRecords,
    kind: Kind,
    term: &'static str,
    namespace: &str,
) -> List {
    let mut to = scoped_value(namespace, "");
    // Greater than the first byte of every value: they are UTF-8.
    to.push(0xff);
    List::Term {
        realm: records.keys.realm().clone(),
        kind,
        name: term,
        from: scoped_value(namespace, ""),
        to,
    }
}

/// All documents of a kind whose term has this value.
pub(super) fn with_value(
    records: &PlatformRecords,
    kind: Kind,
    term: &'static str,
    value: &[u8],
) -> List {
    List::term(records.keys.realm(), kind, term, value)
}

/// A page of documents that pass a filter, as they are shown.
pub(super) async fn page<T: TypedRecord, V>(
    records: &PlatformRecords,
    list: &List,
    inputs: &RequestInputs,
    show: impl Fn(&Key, &T) -> Option<V>,
) -> Result<ListPage<V>, Problem> {
    let mut after = inputs.position()?;
    if after.as_ref().is_some_and(|at| !is_within(list, at)) {
        return Err(unknown_cursor());
    }
    let mut items = Vec::new();
    let mut read = 0;
    loop {
        // Never more than the page has room for: its cursor is that of the last document that was read.
        let limit = inputs.limit - items.len();
        let page = records.list::<T>(list, after.as_ref(), limit).await?;
        read += limit;
        items.extend(page.items.iter().filter_map(|(key, item)| show(key, item)));
        after = page.next;
        if after.is_none() || items.len() >= inputs.limit || read >= SCAN_MAX {
            let next = after.as_ref().map(cursor);
            return Ok(ListPage { items, next });
        }
    }
}

/// Whether a position belongs to a list. One that does not comes from another list, or was made up.
fn is_within(list: &List, position: &Position) -> bool {
    match list {
        List::Prefix(prefix) => position.key.as_bytes().starts_with(prefix),
        List::Term {
            realm,
            kind,
            from,
            to,
            ..
        } => {
            position.key.realm() == realm.as_str()
                && position.key.kind() == kind.as_str()
                && (from..=to).contains(&&position.value)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{is_within, of_namespace};
    use crate::records::{INSTANCE, NAME_TERM, PlatformKeys, scoped_value};
    use sutler_journal::{List, Position};
    use uuid::Uuid;

    #[test]
    fn a_position_of_another_list_is_refused() {
        let keys = PlatformKeys::default();
        let records = crate::api::tests::records();
        let list = of_namespace(&records, INSTANCE, NAME_TERM, "app");
        let at = |namespace: &str, key| Position {
            value: scoped_value(namespace, "db"),
            key,
        };
        let key = || keys.instance("app", Uuid::nil());
        assert!(is_within(&list, &at("app", key())));
        assert!(!is_within(&list, &at("apq", key())));
        assert!(!is_within(&list, &at("ap", key())));
        assert!(!is_within(&list, &at("app", keys.secret("app", "db"))));
        let prefix = List::Prefix(keys.all_below(INSTANCE, "app"));
        assert!(is_within(&prefix, &at("app", key())));
        assert!(!is_within(
            &prefix,
            &at("app", keys.instance("other", Uuid::nil()))
        ));
    }
}
