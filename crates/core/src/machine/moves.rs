//! What a transition does to its agent.
