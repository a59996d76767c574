//! Stopped and let go, asked to end: a run that is signalled at any moment can go on.
