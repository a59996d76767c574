//! What scripts are told, as environment variables.
