//! Faults: why a call has not done what it was to do, by Supervisor's and Supvisors' numbers.

use super::value::XmlValue;
use mainstay_pool::Unserved;
use mainstay_wire::api::Gone;

/// The number of a fault.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Code {
    UnknownMethod = 1,
    IncorrectParameters = 2,
    BadArguments = 3,
    SignatureUnsupported = 4,
    ShutdownState = 6,
    BadName = 10,
    BadSignal = 11,
    NoFile = 20,
    NotExecutable = 21,
    Failed = 30,
    AbnormalTermination = 40,
    SpawnError = 50,
    AlreadyStarted = 60,
    NotRunning = 70,
    /// No fault: among several results, one that is as it should be.
    Success = 80,
    AlreadyAdded = 90,
    StillRunning = 91,
    CantReread = 92,
    /// From here on of Supvisors: not as long as the fleet is as it is.
    BadSupvisorsState = 101,
    /// No app, and so nothing that has rules.
    NotManaged = 102,
    Disabled = 103,
    /// There is nothing here that it could be done to.
    NotApplicable = 104,
    /// There is no such thing here.
    NotInstalled = 105,
}

impl Code {
    pub(crate) fn number(self) -> i64 {
        self as i64
    }

    /// As it stands before the text of a fault.
    fn word(self) -> &'static str {
        match self {
            Code::UnknownMethod => "UNKNOWN_METHOD",
            Code::IncorrectParameters => "INCORRECT_PARAMETERS",
            Code::BadArguments => "BAD_ARGUMENTS",
            Code::SignatureUnsupported => "SIGNATURE_UNSUPPORTED",
            Code::ShutdownState => "SHUTDOWN_STATE",
            Code::BadName => "BAD_NAME",
            Code::BadSignal => "BAD_SIGNAL",
            Code::NoFile => "NO_FILE",
            Code::NotExecutable => "NOT_EXECUTABLE",
            Code::Failed => "FAILED",
            Code::AbnormalTermination => "ABNORMAL_TERMINATION",
            Code::SpawnError => "SPAWN_ERROR",
            Code::AlreadyStarted => "ALREADY_STARTED",
            Code::NotRunning => "NOT_RUNNING",
            Code::Success => "SUCCESS",
            Code::AlreadyAdded => "ALREADY_ADDED",
            Code::StillRunning => "STILL_RUNNING",
            Code::CantReread => "CANT_REREAD",
            Code::BadSupvisorsState => "BAD_SUPVISORS_STATE",
            Code::NotManaged => "NOT_MANAGED",
            Code::Disabled => "DISABLED",
            Code::NotApplicable => "NOT_APPLICABLE",
            Code::NotInstalled => "NOT_INSTALLED",
        }
    }
}

/// What is answered in place of a result.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Fault {
    pub(crate) code: Code,
    pub(crate) text: String,
}

impl Fault {
    pub(crate) fn of(code: Code) -> Fault {
        Fault { code, text: code.word().to_owned() }
    }

    /// With what it is about.
    pub(crate) fn about(code: Code, what: impl std::fmt::Display) -> Fault {
        Fault { code, text: format!("{}: {what}", code.word()) }
    }

    /// As a value: the answer itself, or one of several results.
    pub(crate) fn value(&self) -> XmlValue {
        XmlValue::pairs([
            ("faultCode", XmlValue::int(self.code.number())),
            ("faultString", XmlValue::text(self.text.as_str())),
        ])
    }
}

impl From<Gone> for Fault {
    fn from(gone: Gone) -> Fault {
        Fault::about(Code::ShutdownState, gone)
    }
}

impl From<Unserved> for Fault {
    fn from(unserved: Unserved) -> Fault {
        Fault::about(Code::Failed, unserved)
    }
}
