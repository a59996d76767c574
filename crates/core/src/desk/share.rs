//! What a turn may spend.
