//! The journal's store in etcd, through its JSON gateway: keys and mapping, no decisions.
