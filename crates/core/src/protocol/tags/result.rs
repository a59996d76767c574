//! `<result>PAYLOAD</result>`: return to the caller, or end the agent.

use super::{Body, Tag, TagSpec};

pub(super) const SPEC: TagSpec = TagSpec {
    body: Body::Payload("YOUR RESULT"),
    follower: None,
    continues_at_target: false,
    note: None,
    cheat_sheet: ["`<result>text</result>`", "", "the caller's R; without a caller, the end"],
    read: |_, payload| Ok(Tag::Result { payload: payload.into() }),
    // A result needs a payload, so it is never implicit.
    implicit: |_, _| None,
};
