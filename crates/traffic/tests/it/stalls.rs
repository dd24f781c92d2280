//! Files that hang, and connections that flood: `stop` and `status` are answered all the same.

use crate::plans::{incast, plan};
use crate::site::{PATIENCE, Quiet, Raised, Site};
use clearlane_traffic::agent::Agent;
use clearlane_traffic::audit::AUDIT_FILE;
use clearlane_traffic::controller::LinkError;
use clearlane_traffic::message::{Request, State};
use socket2::{Domain, Socket, Type};
use std::fs;
use std::net::{Ipv4Addr, SocketAddr};
use std::path::Path;
use std::process::Command;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering::SeqCst};
use std::time::{Duration, Instant};

/// Puts a pipe that nobody writes and nobody reads in place of a file, which is kept beside it.
fn piped(path: &Path) {
    let _ = fs::rename(path, path.with_extension("kept"));
    assert!(Command::new("mkfifo").arg(path).status().unwrap().success());
}

fn restored(path: &Path) {
    fs::rename(path.with_extension("kept"), path).unwrap();
}

#[test]
fn pipes_in_place_of_files_hold_up_neither_stop_nor_status() {
    let site = Site::new(&["host0000", "host0001"]);
    let plan = plan(2, 60_000, &incast(1.0, ""), "");
    let folder = site.of_agent("host0001");
    let files = ["policy.toml", AUDIT_FILE, "spool/reserve", "spool/0-sent.log"];
    let paths = files.map(|file| folder.join(file));
    let record = std::thread::scope(|scope| {
        let run = scope.spawn(|| site.run(&plan, &Quiet::default()));
        site.wait_for("host0001", &["asked", "start"]);
        paths.iter().for_each(|path| piped(path));
        let status = site.link("host0001").status().unwrap();
        assert!(status.run.is_some_and(|run| run.state != State::Ended));
        let why = "policy.toml: is a pipe or a device; put a regular file in its place";
        assert!(status.policy[0].ends_with(why), "{:?}", status.policy);
        assert_eq!(site.link("host0001").stop().unwrap().as_deref(), Some("test"));
        run.join().unwrap().unwrap()
    });
    // Packets that were sent until then are kept: the pipes are not the run's files.
    assert!(record.partial && record.connections[0].logs.iter().all(Option::is_some));
    // Requests that cannot be noted are not done, and without a policy nothing is.
    let begin = Request::Begin { plan: "more".into(), duration_ns: 300_000_000 };
    for (path, why) in [(&paths[1], "the audit log cannot be written: is a pipe"), (&paths[0], "/")]
    {
        let refused = site.link("host0001").have_done(&begin, "begin").unwrap_err();
        let LinkError::Refused { reason, .. } = refused else { panic!("{refused}") };
        assert!(reason.starts_with(why) && reason.contains("is a pipe or a device"), "{reason}");
        restored(path);
    }
    // The log that was put away has what was told.
    site.wait_for("host0001", &["stopped", "stopped by controller boss"]);
    let record = site.run(&crate::plans::plan(2, 300, &incast(1.0, ""), ""), &Quiet::default());
    assert!(!record.unwrap().partial);
}

#[test]
fn an_agent_does_not_start_on_pipes() {
    let site = Site::new(&[]);
    let any = SocketAddr::from(([127, 0, 0, 1], 0));
    let files = ["policy.toml", AUDIT_FILE, "ca.pem", "cert.pem", "key.pem", "spool"];
    for (number, file) in files.into_iter().enumerate() {
        let name = format!("h{number}");
        let folder = site.enrolled(&name, clearlane_traffic::name::Role::Agent);
        clearlane_traffic::agent::write_policy(&folder).unwrap();
        piped(&folder.join(file));
        let error = Agent::new(&folder, any, any, Arc::default()).err().unwrap().to_string();
        assert!(error.contains(&format!("{file}: ")) && error.lines().count() == 1, "{error}");
    }
}

/// Connections from an address that say nothing, as many at a time as it may have, and the next as
/// soon as one is closed.
fn flood(from: Ipv4Addr, to: SocketAddr, halt: &AtomicBool, came: &AtomicUsize) {
    let mut open = Vec::new();
    while !halt.load(SeqCst) {
        let socket = Socket::new(Domain::IPV4, Type::STREAM, None).unwrap();
        let own = SocketAddr::from((from, 0));
        let connected = socket
            .bind(&own.into())
            .and_then(|()| socket.connect_timeout(&to.into(), Duration::from_secs(1)));
        came.fetch_add(usize::from(connected.is_ok()), SeqCst);
        open.push(socket);
        if open.len() > 4 {
            open.remove(0);
        }
    }
}

/// Many addresses, half of them of the network that the controller is in, and more connections than
/// wait at a time: whoever has a certificate gets in.
#[test]
fn a_flood_from_many_addresses_keeps_nobody_out() {
    let site = Site::new(&["host0000"]);
    let known = site.known("host0000");
    let (halt, came) = (AtomicBool::new(false), AtomicUsize::new(0));
    std::thread::scope(|scope| {
        for number in 0..40u8 {
            let from = Ipv4Addr::new(127, 0, number % 2, 10 + number);
            let (halt, came) = (&halt, &came);
            scope.spawn(move || flood(from, known.address, halt, came));
        }
        let _raised = Raised(&halt);
        // Long enough that the agent has no place left.
        let until = Instant::now() + PATIENCE;
        while came.load(SeqCst) < 2000 {
            assert!(Instant::now() < until, "{} connections in a minute", came.load(SeqCst));
            std::thread::sleep(Duration::from_millis(10));
        }
        let stopped: Vec<bool> = (0..5)
            .map(|_| {
                let link = clearlane_traffic::controller::Link::connect(&site.keys(), known);
                link.and_then(|mut link| link.stop()).is_ok()
            })
            .collect();
        assert_eq!(stopped, [true; 5]);
    });
}
