//! Finds tags in a text.
