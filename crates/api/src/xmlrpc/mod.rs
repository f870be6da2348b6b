//! XML-RPC as Supervisor and Supvisors speak it, so that `supervisorctl` and what was made for it go on.
//!
//! ```text
//!  POST /RPC2 ─► MethodCall ─► Method (the table) ─► supervisor/ ─► Handle ─► value or fault
//!                                                  └► supvisors/ ──┘
//!  GET /logtail/NAME/CHANNEL, /mainlogtail ─► text that goes on
//! ```
//!
//! A group is an app; without one the name that instances share; without that the job itself. What
//! XML-RPC is asked goes the way of every other request, so that jobs wait for what they wait for
//! and every change is journaled.

mod fault;
mod logtail;
mod message;
mod methods;
mod supervisor;
mod supvisors;
mod value;

use crate::{RouterState, extract, problem::Problem};
use axum::{
    Router,
    extract::{Request, State},
    http::header::CONTENT_TYPE,
    response::{IntoResponse, Response},
    routing::{get, post},
};
use fault::{Code, Fault};
use message::MethodCall;
use methods::{Call, Method};
use supervisor::Supervisor;
use supvisors::Supvisors;
use value::{Params, XmlValue};

/// Calls in one `system.multicall`.
const MOST_CALLS: usize = 1000;

/// For a listener of its own: nothing else can be asked there.
pub(crate) fn routes(state: RouterState) -> Router {
    Router::new()
        .route("/RPC2", post(answer))
        .route("/RPC2/", post(answer))
        .route("/logtail/{name}", get(logtail::stdout))
        .route("/logtail/{name}/{channel}", get(logtail::channel))
        .route("/mainlogtail", get(logtail::main))
        .fallback(async || Problem::no_such_route())
        .method_not_allowed_fallback(async || Problem::wrong_method())
        .with_state(Supervisor::new(state))
}

async fn answer(
    State(supervisor): State<Supervisor>,
    request: Request,
) -> Result<Response, Problem> {
    let body = extract::bytes(request).await?;
    let call = MethodCall::read(&body).map_err(|error| Problem::bad_request(error.to_string()))?;
    let result = perform(&supervisor, call).await;
    Ok(([(CONTENT_TYPE, "text/xml")], message::response(&result)).into_response())
}

async fn perform(supervisor: &Supervisor, call: MethodCall) -> Result<XmlValue, Fault> {
    let method = known(&call.method, call.params.len())?;
    match method.call {
        Call::Multicall => multicall(supervisor, call.params).await,
        _ => one(supervisor, method, Params(call.params)).await,
    }
}

fn known(name: &str, params: usize) -> Result<&'static Method, Fault> {
    let method = Method::named(name).ok_or_else(|| Fault::of(Code::UnknownMethod))?;
    match method.takes(params) {
        true => Ok(method),
        false => Err(Fault::of(Code::IncorrectParameters)),
    }
}

/// A method of `system`, or one that is Supervisor's or Supvisors' affair.
async fn one(supervisor: &Supervisor, method: &Method, params: Params) -> Result<XmlValue, Fault> {
    let about = || {
        let method = Method::named(params.text(0)?);
        method.ok_or_else(|| Fault::of(Code::SignatureUnsupported))
    };
    match method.call {
        Call::ListMethods => {
            Ok(XmlValue::texts(Method::all().into_iter().map(|method| method.name)))
        }
        Call::MethodHelp => Ok(XmlValue::text(about()?.help)),
        Call::MethodSignature => Ok(XmlValue::texts(about()?.signature.iter().copied())),
        Call::Fleet(call) => {
            let supvisors = Supvisors::new(supervisor.state.clone(), supervisor.clone());
            supvisors.call(call, &params).await
        }
        call => supervisor.call(call, &params).await,
    }
}

/// One after the other; none of them may be another `multicall`.
async fn multicall(supervisor: &Supervisor, mut params: Vec<XmlValue>) -> Result<XmlValue, Fault> {
    let calls = match params.pop() {
        Some(XmlValue::Array(calls)) if calls.len() <= MOST_CALLS => calls,
        Some(_) | None => return Err(Fault::of(Code::IncorrectParameters)),
    };
    let mut results = Vec::with_capacity(calls.len());
    for call in calls {
        // A fault stands for itself, a result as Supervisor gives it: without a list around it.
        results.push(match inner(supervisor, &call).await {
            Ok(value) => value,
            Err(fault) => fault.value(),
        });
    }
    Ok(XmlValue::Array(results))
}

async fn inner(supervisor: &Supervisor, call: &XmlValue) -> Result<XmlValue, Fault> {
    let wrong = |why| Fault::about(Code::IncorrectParameters, why);
    let Some(XmlValue::Text(name)) = call.member("methodName") else {
        return Err(wrong("No methodName"));
    };
    let params = match call.member("params") {
        None => Vec::new(),
        Some(XmlValue::Array(params)) => params.clone(),
        Some(_) => return Err(wrong("the params are no array")),
    };
    let method = known(name, params.len())?;
    match method.call {
        Call::Multicall => Err(wrong("Recursive system.multicall forbidden")),
        _ => one(supervisor, method, Params(params)).await,
    }
}

/// Whether it is a call; its parameters survive being written and read again.
#[cfg(feature = "fuzz")]
pub(crate) fn fuzz_read(body: &[u8]) -> bool {
    let Ok(MethodCall { method, params }) = MethodCall::read(body) else { return false };
    let _ = known(&method, params.len());
    let mut text = "<methodCall><methodName>x</methodName><params>".to_owned();
    for param in &params {
        text.push_str("<param>");
        param.write(&mut text);
        text.push_str("</param>");
    }
    text.push_str("</params></methodCall>");
    let again = MethodCall::read(text.as_bytes()).map(|call| call.params);
    assert_eq!(again.as_ref(), Ok(&params), "{text}");
    true
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn methods_stand_in_order_and_once() {
        for methods in [methods::METHODS, supvisors::methods::FLEET_METHODS, &[]] {
            assert!(methods.windows(2).all(|two| two[0].name < two[1].name));
        }
        assert!(Method::all().windows(2).all(|two| two[0].name < two[1].name));
    }

    #[test]
    fn only_whether_to_wait_may_be_left_out() {
        let takes = |name, count| known(name, count).is_ok();
        assert!(takes("supervisor.startProcess", 2) && takes("supervisor.startProcess", 1));
        assert!(!takes("supervisor.startProcess", 0) && !takes("supervisor.startProcess", 3));
        assert!(takes("supervisor.startAllProcesses", 0));
        assert!(takes("supervisor.getState", 0) && !takes("supervisor.getState", 1));
        assert!(!takes("supervisor.readLog", 1));
        assert!(takes("supvisors.start_process", 2) && takes("supvisors.start_process", 4));
        assert!(!takes("supvisors.start_process", 1) && !takes("supvisors.start_process", 5));
        assert!(takes("supvisors.get_address_info", 1) && takes("supvisors.end_sync", 0));
    }
}
