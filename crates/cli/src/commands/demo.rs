//! `raymond demo`: the tour.

use crate::args::Demo;
use crate::failure::Failure;

pub(crate) fn demo(_: &Demo) -> Result<u8, Failure> {
    Err(Failure::environment("not here yet"))
}
