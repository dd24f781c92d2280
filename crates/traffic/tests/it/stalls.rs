//! Files that hang, and connections that flood: `stop` and `status` are answered all the same.

use crate::plans::{incast, plan};
use crate::site::{PATIENCE, Quiet, Raised, Site};
use clearlane_traffic::agent::Agent;
use clearlane_traffic::audit::AUDIT_FILE;
use clearlane_traffic::channel::HANDSHAKE_MAX;
use clearlane_traffic::controller::LinkError;
use clearlane_traffic::message::{Request, State};
use socket2::{Domain, Socket, Type};
use std::fs;
use std::io::{ErrorKind, Read};
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

/// Connections that may wait at a time: `UNPROVEN_MAX` of crates/traffic/src/unproven.rs.
const PLACES: usize = 256;
/// Addresses of the flood.
const ADDRESSES: u8 = 40;
/// Connections that each address keeps open. All addresses together have more than may wait.
const OPEN: usize = PLACES / ADDRESSES as usize + 1;
/// Number of closed connections that shows that the agent has no place left.
const TURNED_AWAY: usize = 1000;

/// A connection from an address that says nothing. `None` if it is not made within a second.
fn silent(from: Ipv4Addr, to: SocketAddr) -> Option<Socket> {
    let socket = Socket::new(Domain::IPV4, Type::STREAM, None).unwrap();
    socket.bind(&SocketAddr::from((from, 0)).into()).ok()?;
    socket.connect_timeout(&to.into(), Duration::from_secs(1)).ok()?;
    socket.set_nonblocking(true).unwrap();
    Some(socket)
}

/// Whether the other side has closed a connection.
fn is_closed(mut socket: &Socket) -> bool {
    match socket.read(&mut [0]) {
        Ok(bytes) => bytes == 0,
        Err(error) => !matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::Interrupted),
    }
}

/// Keeps `OPEN` silent connections from an address, and makes another for each that is closed.
/// Counts those that were turned away: a connection that has a place is not closed before
/// `HANDSHAKE_MAX`.
fn flood(from: Ipv4Addr, to: SocketAddr, halt: &AtomicBool, turned_away: &AtomicUsize) {
    let mut open: Vec<(Instant, Socket)> = Vec::new();
    while !halt.load(SeqCst) {
        open.retain(|(since, socket)| {
            let is_over = is_closed(socket);
            if is_over && since.elapsed() < HANDSHAKE_MAX {
                turned_away.fetch_add(1, SeqCst);
            }
            !is_over
        });
        while open.len() < OPEN && !halt.load(SeqCst) {
            let since = Instant::now();
            let Some(socket) = silent(from, to) else { break };
            open.push((since, socket));
        }
        std::thread::sleep(Duration::from_millis(1));
    }
}

/// Many addresses, half of them of the network that the controller is in, have more connections
/// than may wait. The agent turns some of them away, and whoever has a certificate gets in.
#[test]
fn a_flood_from_many_addresses_keeps_nobody_out() {
    let site = Site::new(&["host0000"]);
    let known = site.known("host0000");
    let (halt, turned_away) = (AtomicBool::new(false), AtomicUsize::new(0));
    std::thread::scope(|scope| {
        for number in 0..ADDRESSES {
            let from = Ipv4Addr::new(127, 0, number % 2, 10 + number);
            let (halt, turned_away) = (&halt, &turned_away);
            scope.spawn(move || flood(from, known.address, halt, turned_away));
        }
        let _raised = Raised(&halt);
        let until = Instant::now() + PATIENCE;
        while turned_away.load(SeqCst) < TURNED_AWAY {
            let count = turned_away.load(SeqCst);
            assert!(Instant::now() < until, "{count} connections turned away in a minute");
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
