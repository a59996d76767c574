//! What an agent is told when its message cannot be used.
