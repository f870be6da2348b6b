//! `reload` of a job: what `mainstay reload JOB` does.

use crate::{
    keys::{Kind, Reload::Live, Table, key},
    reader::{Reader, Span, Value},
};
use mainstay_core::{plan::Reload, signal::Signal};

/// `reload` as it is written.
#[derive(Default)]
pub(crate) struct ReloadKeys {
    signal: Option<(Signal, Span)>,
    exec: Option<(Vec<String>, Span)>,
    spoilt: bool,
}

pub(crate) static RELOAD: Table<ReloadKeys> = Table {
    keys: &[
        key("signal", Kind::Signal, "", Live, "The signal that it is sent.", |it, v, r| {
            it.signal = r.signal(v).map(|signal| (signal, v.span));
            it.spoilt |= it.signal.is_none();
            Some(())
        }),
        key("exec", Kind::Command, "", Live, "The command that is run.", |it, v, r| {
            it.exec = r.command(v).map(|exec| (exec, v.span));
            it.spoilt |= it.exec.is_none();
            Some(())
        }),
    ],
    later: &[],
    refused: &[],
};

pub(crate) fn read(v: Value<'_>, r: &mut Reader<'_>) -> Option<Reload> {
    let mut it = ReloadKeys::default();
    r.nested(v, &RELOAD, &mut it)?;
    match (it.signal, it.exec) {
        _ if it.spoilt => None,
        (Some((signal, _)), None) => Some(Reload::Signal(signal)),
        (None, Some((exec, _))) => Some(Reload::Exec(exec)),
        (Some((_, first)), Some((_, span))) => {
            let first = (r.here(first), "'signal' is here");
            r.wrong_beside(span, first, "'signal' and 'exec' together", "keep one of them")
        }
        (None, None) => {
            let help = "add signal = \"SIGHUP\" or exec = \"…\", or remove it";
            r.wrong(v.span, "it says nothing", help)
        }
    }
}
