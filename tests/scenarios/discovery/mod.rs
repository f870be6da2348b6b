//! What others are told about jobs, and what jobs are told about others, with a real Consul.

mod addresses;
mod announced;
mod backends;
mod many;
mod outage;
mod watched;

use mainstay_tests::{Consul, Node, Setup, until};
use serde_json::Value;

/// A configuration that begins with where services are found.
fn with_consul(consul: &Consul, rest: &str) -> String {
    format!(
        "[node]\nname = \"here\"\nexit = \"never\"\n[discovery]\nengine = \"consul\"\n\
         address = \"{}\"\n{rest}",
        consul.address()
    )
}

fn start(consul: &Consul, rest: &str) -> Node {
    Setup::config(with_consul(consul, rest)).start()
}

fn until_standing(consul: &Consul, service: &str, id: &str, wanted: &str) -> String {
    until(&format!("{id} is {wanted}"), || {
        let (standing, note) = consul.standing(service, id)?;
        (standing == wanted).then_some(note)
    })
}

fn until_absent(consul: &Consul, id: &str) {
    until(&format!("{id} is gone"), || {
        consul.get("/v1/agent/services").get(id).is_none().then_some(())
    });
}

fn watch(node: &Node, name: &str) -> Value {
    let status = node.status();
    let watches = status["watches"].as_array().expect("a list");
    watches.iter().find(|watch| watch["name"] == name).expect("the watch").clone()
}
