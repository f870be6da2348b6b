//! What we use of systemd's D-Bus interface.

use zbus::{OwnedObjectPath, proxy};

#[proxy(
    default_service = "org.freedesktop.systemd1",
    default_path = "/org/freedesktop/systemd1",
    interface = "org.freedesktop.systemd1.Manager"
)]
pub(super) trait Manager {
    fn subscribe(&self) -> zbus::Result<()>;
    fn load_unit(&self, name: &str) -> zbus::Result<OwnedObjectPath>;
    fn reload_or_try_restart_unit(&self, name: &str, mode: &str) -> zbus::Result<OwnedObjectPath>;
    fn start_unit(&self, name: &str, mode: &str) -> zbus::Result<OwnedObjectPath>;
    fn reset_failed_unit(&self, name: &str) -> zbus::Result<()>;
    fn stop_unit(&self, name: &str, mode: &str) -> zbus::Result<OwnedObjectPath>;
    fn kill_unit(&self, name: &str, whom: &str, signal: i32) -> zbus::Result<()>;

    #[zbus(signal)]
    fn job_removed(
        &self,
        id: u32,
        job: OwnedObjectPath,
        unit: String,
        result: String,
    ) -> zbus::Result<()>;
}

#[proxy(default_service = "org.freedesktop.systemd1", interface = "org.freedesktop.systemd1.Unit")]
pub(super) trait Unit {
    #[zbus(property(emits_changed_signal = "false"))]
    fn load_state(&self) -> zbus::Result<String>;
    #[zbus(property(emits_changed_signal = "false"))]
    fn active_state(&self) -> zbus::Result<String>;
    #[zbus(property(emits_changed_signal = "false"), name = "InvocationID")]
    fn invocation_id(&self) -> zbus::Result<Vec<u8>>;
}

#[proxy(
    default_service = "org.freedesktop.systemd1",
    interface = "org.freedesktop.systemd1.Service"
)]
pub(super) trait Service {
    #[zbus(property(emits_changed_signal = "false"), name = "MainPID")]
    fn main_pid(&self) -> zbus::Result<u32>;
    #[zbus(property(emits_changed_signal = "false"))]
    fn result(&self) -> zbus::Result<String>;
    #[zbus(property(emits_changed_signal = "false"))]
    fn reload_result(&self) -> zbus::Result<String>;
}
