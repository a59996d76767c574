//! Run records as resources: `raymond://runs/RUN`, listed in pages.

use raymond_core::ids::RunId;
use raymond_core::text::excerpt;
use rmcp::ErrorData;
use rmcp::model::{
    ListResourcesResult, ReadResourceResult, Resource, ResourceContents, ResourceTemplate,
};
use serde_json::json;

use crate::ToolHost;

const PREFIX: &str = "raymond://runs/";
const JSON: &str = "application/json";
/// Runs on a page; each of them is opened for its summary.
const PAGE: usize = 50;

/// Returns one page of the runs by name, after the one that `cursor` names.
pub(crate) fn list(
    host: &dyn ToolHost,
    cursor: Option<&str>,
) -> Result<ListResourcesResult, ErrorData> {
    let project = host.project(None).map_err(failed)?;
    let runs = project.runs().map_err(|error| failed(error.to_string()))?;
    let begin = match cursor.map(str::parse::<RunId>) {
        None => 0,
        // By name, not by position: a run that is created or deleted between two pages moves no
        // other run to another page.
        Some(Ok(last)) => runs.partition_point(|run| *run <= last),
        Some(Err(_)) => return Err(unknown_cursor()),
    };
    let page = &runs[begin..runs.len().min(begin + PAGE)];
    let mut listed = ListResourcesResult::with_all_items(
        page.iter().map(|run| resource(run, host.summary(run))).collect(),
    );
    if begin + page.len() < runs.len() {
        listed.next_cursor = page.last().map(|run| run.as_str().to_owned());
    }
    Ok(listed)
}

fn resource(run: &RunId, summary: String) -> Resource {
    Resource::new(format!("{PREFIX}{run}"), run.as_str())
        .with_description(summary)
        .with_mime_type(JSON)
}

/// Returns the error for a cursor that the server did not return.
pub(crate) fn unknown_cursor() -> ErrorData {
    let message = "this cursor was not given out here: begin without one, and follow nextCursor";
    ErrorData::invalid_params(message, None)
}

/// Returns the template of a run's address.
pub(crate) fn template() -> ResourceTemplate {
    ResourceTemplate::new(format!("{PREFIX}{{run}}"), "run")
        .with_title("The record of a run")
        .with_description("How far the run is, the state and attempt of each step that was reached, and the results of steps")
        .with_mime_type(JSON)
}

/// Returns one record.
pub(crate) fn read(host: &dyn ToolHost, uri: &str) -> Result<ReadResourceResult, ErrorData> {
    let missing = || {
        let uri = excerpt(uri, 100);
        let message = format!("there is no resource {uri:?}; resources/list has those there are");
        ErrorData::resource_not_found(message, Some(json!({ "uri": uri })))
    };
    let run = uri.strip_prefix(PREFIX).and_then(|run| run.parse().ok()).ok_or_else(missing)?;
    let record = host.record(&run).map_err(failed)?.ok_or_else(missing)?;
    let text = ResourceContents::text(format!("{record:#}"), uri).with_mime_type(JSON);
    Ok(ReadResourceResult::new(vec![text]))
}

fn failed(message: String) -> ErrorData {
    ErrorData::internal_error(message, None)
}
