//! Names of units.

use mainstay_core::rollout::InstanceNumber;

const KINDS: [&str; 11] = [
    "service",
    "socket",
    "target",
    "timer",
    "path",
    "mount",
    "automount",
    "swap",
    "slice",
    "scope",
    "device",
];

/// A name without a kind is that of a service.
#[must_use]
pub fn unit_name(name: &str) -> String {
    match name.rsplit_once('.') {
        Some((_, kind)) if KINDS.contains(&kind) => name.to_owned(),
        Some(_) | None => format!("{name}.service"),
    }
}

/// `web@1.service` of `web@.service`, `web@` or `web`.
#[must_use]
pub fn instance_unit(template: &str, number: InstanceNumber) -> String {
    let name = unit_name(template);
    let number = number.number();
    let (stem, kind) = name.rsplit_once('.').unwrap_or((&name, "service"));
    let stem = stem.split_once('@').map_or(stem, |(stem, _)| stem);
    format!("{stem}@{number}.{kind}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_get_their_kind_and_their_number() {
        assert_eq!(unit_name("nginx"), "nginx.service");
        assert_eq!(unit_name("nginx.socket"), "nginx.socket");
        assert_eq!(unit_name("my.app"), "my.app.service");
        for template in ["web@.service", "web@", "web", "web.service", "web@1.service"] {
            assert_eq!(instance_unit(template, InstanceNumber::Two), "web@2.service");
        }
    }
}
