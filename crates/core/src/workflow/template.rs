//! `{{name}}` in prompts, replaced in one pass.
