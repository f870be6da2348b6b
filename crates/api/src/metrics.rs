//! What users measure themselves.

use crate::{
    Reach,
    body::{Asked, Body},
    node::Nothing,
    problem::Problem,
};
use axum::{Json, extract::State};
use serde_json::{Value, json};
use std::collections::BTreeMap;

/// Adds to counters, sets gauges, shows values to histograms and summaries: all of them or none.
pub(crate) async fn feed(
    State(reach): State<Reach>,
    Asked(Nothing {}): Asked<Nothing>,
    Body(values): Body<BTreeMap<String, f64>>,
) -> Result<Json<Value>, Problem> {
    reach
        .handle
        .user_metrics()
        .feed(&values)
        .map_err(|error| Problem::bad_request(error.to_string()))?;
    Ok(Json(json!({ "taken": values.len() })))
}
