//! Writes a valid history of a lease lock to standard output, for measurements.
//!
//! `generate OPERATIONS CLIENTS INDETERMINATE_PERCENT [double-grant]`, e.g. `generate 1000000 5 1`.

use std::io::{BufWriter, Write};

#[path = "../benches/generator/mod.rs"]
mod generator;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [operations, clients, indeterminate, rest @ ..] = arguments.as_slice() else {
        return Err("usage: generate OPERATIONS CLIENTS INDETERMINATE_PERCENT [double-grant]".into());
    };
    let settings = generator::Settings {
        operations: operations.parse()?,
        clients: clients.parse()?,
        keys: 1,
        indeterminate: indeterminate.parse::<f64>()? / 100.0,
        double_grant: rest.iter().any(|word| word == "double-grant"),
        seed: 7,
    };
    let mut out = BufWriter::new(std::io::stdout().lock());
    generator::generate(&settings, &mut out)?;
    Ok(out.flush()?)
}
