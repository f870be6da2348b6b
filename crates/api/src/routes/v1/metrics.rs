//! What users measure themselves.

use crate::{
    RouterState,
    extract::{Body, Nothing, Query},
    problem::Problem,
};
use axum::{Json, extract::State};
use mainstay_wire::api::{MetricValues, MetricsTaken};

/// Adds to counters, sets gauges, shows values to histograms and summaries: all of them or none.
pub(crate) async fn feed(
    State(state): State<RouterState>,
    Query(Nothing {}): Query<Nothing>,
    Body(MetricValues(values)): Body<MetricValues>,
) -> Result<Json<MetricsTaken>, Problem> {
    state
        .handle
        .user_metrics()
        .feed(&values)
        .map_err(|error| Problem::bad_request(error.to_string()))?;
    Ok(Json(MetricsTaken { taken: values.len() }))
}
