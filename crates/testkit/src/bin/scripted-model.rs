//! Serves a scripted model for a client that is run by hand; see [`raymond_testkit::model`].
//!
//! `scripted-model PORT LOG`: prints its URL, and logs every request as a line of JSON.

use std::fs::OpenOptions;
use std::io::{self, Write as _};
use std::path::PathBuf;
use std::process::ExitCode;

use raymond_testkit::model::{Model, ModelSettings};

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let served = match arguments.as_slice() {
        [port, log] => match port.parse() {
            Ok(port) => serve(port, log).map_err(|error| format!("cannot serve a model: {error}")),
            Err(_) => Err(format!("{port:?} is not a port")),
        },
        _ => Err("scripted-model PORT LOG".to_owned()),
    };
    match served {
        Ok(()) => ExitCode::SUCCESS,
        Err(why) => {
            writeln!(io::stderr(), "{why}").ok();
            ExitCode::from(2)
        }
    }
}

fn serve(port: u16, log: &str) -> io::Result<()> {
    let log = OpenOptions::new().create(true).append(true).open(log)?;
    let settings = ModelSettings { port, gates: PathBuf::from("."), log: Some(log) };
    let model = Model::start(settings)?;
    writeln!(io::stdout(), "{}", model.url())?;
    // Serves until the process is killed.
    loop {
        std::thread::park();
    }
}
