//! What a configuration may refer to: the host name and environment of this process.

use mainstay_config::Context;
use mainstay_core::text::bytes;

pub(crate) fn context() -> Context {
    let text = |value: std::ffi::OsString| bytes::from_os(&value);
    Context {
        host_name: rustix::system::uname().nodename().to_string_lossy().into_owned(),
        env: std::env::vars_os().map(|(key, value)| (text(key), text(value))).collect(),
        unlimited: !mainstay_sys::cgroup::may_limit(),
        knows_user: Some(knows_user),
    }
}

/// A directory of users that does not answer says nothing about one.
fn knows_user(name: &str) -> bool {
    !matches!(mainstay_sys::user::lookup_user(name), Ok(None))
}
