//! `<result>PAYLOAD</result>`: return to the caller, or end the agent. With `status="failed"` the
//! payload is the reason of a failure: the caller learns the status, or the agent fails.

use super::attributes::Attributes;
use super::{Body, ResultStatus, Tag, TagProblem, TagSpec};

pub(super) const SPEC: TagSpec = TagSpec {
    body: Body::Payload("YOUR RESULT"),
    follower: None,
    continues_at_target: false,
    attributes: &["status"],
    note: None,
    cheat_sheet: [
        "`<result>text</result>`",
        "",
        "the caller's R; without a caller, the end (as failed with `status=\"failed\"`)",
    ],
    read: |given, payload| Ok(Tag::Result { payload: payload.into(), status: status(given)? }),
    // A result needs a payload, so it is never implicit.
    implicit: |_, _| None,
};

fn status<'a>(given: &mut Attributes<'a>) -> Result<ResultStatus, TagProblem<'a>> {
    match given.text("status").as_deref() {
        None | Some("ok") => Ok(ResultStatus::Ok),
        Some("failed") => Ok(ResultStatus::Failed),
        Some(_) => Err(TagProblem::Status),
    }
}
