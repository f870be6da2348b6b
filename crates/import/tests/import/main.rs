//! What a user of this crate can see: what foreign files become, and what is said about them.
#![allow(clippy::unwrap_used)]

mod config_o_mat;
mod containerpilot;
mod importers;
mod supvisors;

use mainstay_config::Context;

fn context() -> Context {
    let env = [("GREETING", "hello world"), ("EMPTY", "")];
    Context {
        host_name: "host-1".to_owned(),
        env: env.into_iter().map(|(k, v)| (k.to_owned(), v.to_owned())).collect(),
        knows_user: Some(|name| name != "nobody-here"),
        ..Context::default()
    }
}
