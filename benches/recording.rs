//! What does recording cost? Recorded operations a second with lock `none`, and the throughput of a Redis lock
//! with the whole runner at work, as a ratio to the same worker's loop without a line of it written.
//!
//! `cargo bench --bench recording` prints the table of `docs/measurements.md`.

use std::{
    io::{BufRead, BufReader, Write},
    net::TcpListener,
    path::{Path, PathBuf},
    process::{Child, Command, Stdio},
    time::{Duration, Instant},
};

use fencepost_checker::plan::{OnLost, Span};
use fencepost_workloads::protocol::{Open, Order, Protected, Reply, Step, Tenures};

const FENCEPOST: &str = env!("CARGO_BIN_EXE_fencepost");
const PAIRS: usize = 5;
const SECONDS: u64 = 2;

fn main() {
    let store = std::env::temp_dir().join(format!("fencepost-bench-{}", std::process::id()));
    println!("recorded operations a second, lock none, workload mutex, no hold");
    for clients in [1, 4, 8] {
        let rate = recorded(&store, "none", clients);
        println!("  {clients} clients: {:.0} operations/s", rate * 2.0);
    }
    if Command::new("redis-server").arg("--version").output().is_err() {
        println!("redis-server is not installed: the ratio is not measured");
        return;
    }
    println!("tenures a second on redis, 1 client, recorded against bare, {PAIRS} pairs of {SECONDS} s");
    let mut ratios = Vec::new();
    for _ in 0..PAIRS {
        let (bare, recorded) = (bare(&store), recorded(&store, "redis", 1));
        println!("  bare {bare:.0}/s, recorded {recorded:.0}/s, ratio {:.3}", recorded / bare);
        ratios.push(recorded / bare);
    }
    ratios.sort_by(f64::total_cmp);
    println!("  median ratio {:.3}", ratios[PAIRS / 2]);
    let _ = std::fs::remove_dir_all(&store);
}

/// Tenures a second of a whole run.
fn recorded(store: &Path, lock: &str, clients: u32) -> f64 {
    let output = Command::new(FENCEPOST)
        .args(["run", "--lock", lock, "--workload", "mutex", "--hold", "0", "--think", "0", "--retry", "0"])
        .args(["--clients", &clients.to_string(), "--time", &format!("{SECONDS}s"), "--allow", "*", "--json"])
        .arg("--store")
        .arg(store)
        .stderr(Stdio::null())
        .output()
        .expect("fencepost runs");
    let verdict: serde_json::Value = serde_json::from_slice(&output.stdout).expect("a verdict");
    let granted = verdict["counts"]["acquires_ok"].as_u64().expect("a count");
    granted as f64 / SECONDS as f64
}

/// Tenures a second of a worker that records nothing.
fn bare(store: &Path) -> f64 {
    let scratch = store.join("bare");
    std::fs::create_dir_all(&scratch).expect("a temporary directory");
    let (redis, port) = redis(&scratch);
    let mut worker = Killed(
        Command::new(FENCEPOST)
            .arg("worker")
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .expect("a worker starts"),
    );
    let mut orders = worker.0.stdin.take().expect("a pipe");
    let mut replies = BufReader::new(worker.0.stdout.take().expect("a pipe")).lines();
    let mut order = |order: &Order| {
        let mut line = serde_json::to_vec(order).expect("an order");
        line.push(b'\n');
        orders.write_all(&line).expect("a listening worker");
    };
    let origin_ns = fencepost_nemesis::clock::raw::monotonic_ns();
    order(&Order::Open(Box::new(open(&scratch, port, origin_ns))));
    let mut reply = || -> Reply {
        serde_json::from_str(&replies.next().expect("a line").expect("text")).expect("a reply")
    };
    assert_eq!(reply(), Reply::Opened);
    let begin_ns = fencepost_nemesis::clock::raw::monotonic_ns() - origin_ns;
    order(&Order::Tenures(Box::new(tenures(begin_ns + SECONDS * 1_000_000_000))));
    let Reply::Done { tenures, .. } = reply() else { panic!("the worker did not end its tenures") };
    drop(redis);
    tenures as f64 / SECONDS as f64
}

fn open(scratch: &Path, port: u16, origin_ns: u64) -> Open {
    Open {
        process: "c1".to_owned(),
        actors: 1,
        origin_ns,
        lock: "redis".parse().expect("a choice"),
        endpoints: vec![format!("redis://127.0.0.1:{port}")],
        scratch: scratch.to_owned(),
        resource: "service".parse().expect("a choice"),
        // The workload touches no data.
        resource_endpoint: "127.0.0.1:1".to_owned(),
        fence: "none".parse().expect("a choice"),
        ttl_ms: 1000,
        wait_ms: 0,
        on_lost: OnLost::Stop,
        stop_at: Vec::new(),
        record: false,
    }
}

fn tenures(until_ns: u64) -> Tenures {
    let nothing = Span { min_ms: 0.0, max_ms: 0.0 };
    Tenures {
        actor: 0,
        steps: vec![Step::Acquire, Step::Hold { span: nothing }, Step::Release],
        protected: vec![Protected { lock: "mutex".to_owned(), key: "nothing".to_owned() }],
        first_attempt: 1,
        stride: 1,
        until_ns,
        think: nothing,
        retry_ms: 0,
        seed: 1,
    }
}

struct Killed(Child);

impl Drop for Killed {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

fn redis(folder: &PathBuf) -> (Killed, u16) {
    let port =
        TcpListener::bind("127.0.0.1:0").and_then(|socket| socket.local_addr()).expect("a port").port();
    let server = Command::new("redis-server")
        .args([
            "--bind",
            "127.0.0.1",
            "--save",
            "",
            "--appendonly",
            "no",
            "--port",
            &port.to_string(),
            "--dir",
        ])
        .arg(folder)
        .stdout(Stdio::null())
        .spawn()
        .expect("redis-server starts");
    let begin = Instant::now();
    while std::net::TcpStream::connect(("127.0.0.1", port)).is_err() {
        assert!(begin.elapsed() < Duration::from_secs(10), "redis-server does not answer");
        std::thread::sleep(Duration::from_millis(10));
    }
    (Killed(server), port)
}
