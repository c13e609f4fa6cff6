//! Real servers for the tests of this workspace: found on the machine, started on free ports with
//! throw-away data, stopped when nobody needs them any more. Not for production.
