//! Who tries what may not be done: it is refused or stopped, the audit log says so, and nothing
//! else is disturbed.

use crate::plans::{incast, plan};
use crate::runs::{measured, sent};
use crate::site::{PATIENCE, Quiet, Site, is_open, policy, silent_at};
use clearlane_lab::{HostPlan, Unfinished};
use clearlane_traffic::channel::Channel;
use clearlane_traffic::clock::now_ns;
use clearlane_traffic::consent::Token;
use clearlane_traffic::controller::{Link, LinkError, orders};
use clearlane_traffic::keys::{Authority, Keys};
use clearlane_traffic::message::{Answer, Request, State};
use clearlane_traffic::name::{Identity, Role};
use clearlane_traffic::order::Order;
use clearlane_traffic::packet::Header;
use clearlane_traffic::results::remarks;
use clearlane_traffic::tls;
use rand_bytes::bytes;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::{ClientConfig, RootCertStore};
use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::Arc;
use std::time::{Duration, Instant};
use time::OffsetDateTime;

/// Bytes that look like nothing, the same each time.
mod rand_bytes {
    pub fn bytes(count: usize) -> Vec<u8> {
        let mut state = 0x9e37_79b9_7f4a_7c15u64;
        let next = |_| {
            state ^= state << 13;
            state ^= state >> 7;
            state ^= state << 17;
            state as u8
        };
        (0..count).map(next).collect()
    }
}

const DAY_S: f64 = 86_400.0;
const TWO: [&str; 2] = ["host0000", "host0001"];

fn two_hosts() -> HostPlan {
    plan(2, 300, &incast(1.0, ""), "")
}

fn order(plan: &HostPlan) -> Order {
    orders(plan, None).unwrap()[0].order.clone()
}

/// A run still works: whatever was tried has disturbed nothing.
fn works(site: &Site) {
    let record = site.run(&two_hosts(), &Quiet::default()).unwrap();
    assert!(!record.partial, "{record:?}");
}

fn begin(plan: &str) -> Request {
    Request::Begin { plan: plan.into(), duration_ns: 300_000_000 }
}

fn begun(site: &Site, name: &str) -> Link {
    let mut link = site.link(name);
    link.have_done(&begin("attack"), "begin").unwrap();
    link
}

fn reason<T: std::fmt::Debug>(refused: Result<T, LinkError>) -> String {
    match refused.unwrap_err() {
        LinkError::Refused { reason, .. } => reason,
        other => panic!("{other}"),
    }
}

#[test]
fn nobody_gets_in_without_a_certificate_of_the_site() {
    let site = Site::new(&TWO);
    let address = site.known("host0000").address;
    // Plain text.
    let mut plain = TcpStream::connect(address).unwrap();
    plain.write_all(b"GET / HTTP/1.1\r\n\r\n").unwrap();
    let mut heard = Vec::new();
    let _ = plain.read_to_end(&mut heard);
    site.wait_for("host0000", &["refused", "control connection"]);
    // Clients that trust the site: without a certificate, and with that of another authority which
    // says the same.
    let elsewhere = site.folder.join("elsewhere");
    Authority::init(&elsewhere, "boss".parse().unwrap(), &Unfinished::default()).unwrap();
    let mut roots = RootCertStore::empty();
    roots.add(site.keys().authority.clone()).unwrap();
    let config = || {
        let crypto = Arc::new(rustls::crypto::ring::default_provider());
        let config = ClientConfig::builder_with_provider(crypto);
        let config = config.with_protocol_versions(&[&rustls::version::TLS13]).unwrap();
        config.with_root_certificates(roots.clone())
    };
    let foreign = CertificateDer::from_pem_file(elsewhere.join("cert.pem")).unwrap();
    let key = PrivateKeyDer::from_pem_file(elsewhere.join("key.pem")).unwrap();
    let with_foreign = config().with_client_auth_cert(vec![foreign], key).unwrap();
    let who = Identity { name: "host0000".parse().unwrap(), role: Role::Agent };
    for (config, why) in [
        (config().with_no_client_auth(), "peer sent no certificates"),
        (with_foreign, "its certificate is of another site"),
    ] {
        let name = tls::server_name(&who).unwrap();
        // In TLS 1.3 a client has shaken hands before the server has looked at its certificate.
        let mut channel = Channel::connect(address, Arc::new(config), name).unwrap();
        let _ = channel.send(&Request::Status {});
        assert!(channel.expect::<Answer>(PATIENCE).is_err());
        site.wait_for("host0000", &["refused", "control connection", why]);
    }
    works(&site);
}

#[test]
fn a_role_allows_what_it_allows() {
    let site = Site::new(&TWO);
    let viewer = Keys::read(&site.enrolled("anna", Role::Viewer)).unwrap();
    let mut link = Link::connect(&viewer, site.known("host0000")).unwrap();
    assert_eq!(link.status().unwrap().run, None);
    for request in [begin("mine"), Request::Stop {}, Request::Start { at_ns: 0 }] {
        let why = reason(link.ask(&request));
        assert!(why.starts_with("a certificate of role viewer may not ask for this"), "{why}");
    }
    site.wait_for("host0000", &["refused", "viewer anna", "begin a run"]);
    // An agent cannot command another.
    let agent = Keys::read(&site.of_agent("host0001")).unwrap();
    let error = Link::connect(&agent, site.known("host0000")).err().unwrap().to_string();
    assert!(error.contains("a certificate of role agent may not ask for this: hello"), "{error}");
    works(&site);
}

#[test]
fn a_token_is_good_once_and_for_who_it_is_for() {
    let site = Site::new(&TWO);
    let plan = two_hosts();
    let mut receiver = begun(&site, "host0000");
    let from = SocketAddr::from(([127, 0, 0, 1], 1)).ip();
    let answer = receiver.ask(&Request::Receive { order: order(&plan), from }).unwrap();
    let Answer::Expected { tokens } = answer else { panic!("{answer:?}") };
    let data = receiver.data;
    let connect = |bytes: &[u8]| {
        let mut stream = TcpStream::connect(data).unwrap();
        stream.write_all(bytes).unwrap();
        stream.set_read_timeout(Some(PATIENCE)).unwrap();
        let mut answer = [0; 32];
        let read = stream.read_exact(&mut answer);
        read.map(|()| (stream, answer))
    };
    // One that was made up, one whose key is another's, and noise.
    let foreign = Token::new(&ring::rand::SystemRandom::new()).unwrap();
    assert!(connect(&foreign.request()).is_err());
    let mut forged = tokens[0].request();
    forged[30] ^= 1;
    assert!(connect(&forged).is_err());
    assert!(connect(&bytes(56)).is_err());
    site.wait_for("host0000", &["refused", "data connection", "shows no key"]);
    site.wait_for("host0000", &["refused", "data connection", "none that is expected"]);
    // A token for another host.
    let elsewhere = Order { connection: 7, ..order(&plan) };
    let from = "127.0.0.2".parse().unwrap();
    let answer = receiver.ask(&Request::Receive { order: elsewhere, from }).unwrap();
    let Answer::Expected { tokens: others } = answer else { panic!("{answer:?}") };
    assert!(connect(&others[0].request()).is_err());
    site.wait_for("host0000", &["refused", "data connection", "its token is for 127.0.0.2"]);
    // The right one, and then the same again.
    let (_held, answer) = connect(&tokens[0].request()).unwrap();
    assert!(tokens[0].is_accepted(&answer));
    assert!(connect(&tokens[0].request()).is_err());
    drop(_held);
    drop(receiver);
    works(&site);
}

#[test]
fn nothing_is_sent_to_who_does_not_consent() {
    let site = Site::new(&TWO);
    let plan = two_hosts();
    // A host of loopback that runs something else, which answers with what it hears.
    let other = TcpListener::bind("127.0.0.1:0").unwrap();
    let to = other.local_addr().unwrap();
    let echo = std::thread::spawn(move || {
        let (mut stream, _) = other.accept().unwrap();
        let mut heard = Vec::new();
        let mut bytes = [0; 4096];
        while let Ok(read @ 1..) = stream.read(&mut bytes) {
            heard.extend_from_slice(&bytes[..read]);
            let _ = stream.write_all(&bytes[..read]);
        }
        heard.len()
    });
    let mut sender = begun(&site, "host0001");
    let tokens = vec![Token::new(&ring::rand::SystemRandom::new()).unwrap()];
    let why = reason(sender.ask(&Request::Send { order: order(&plan), to, tokens }));
    assert!(why.ends_with("does not consent to be sent to"), "{why}");
    assert_eq!(echo.join().unwrap(), 56, "more than the token's request was sent");
    drop(sender);
    works(&site);
}

#[test]
fn nothing_is_sent_beyond_what_the_policy_lists() {
    let site = Site::new(&TWO);
    let plan = two_hosts();
    let mut sender = begun(&site, "host0001");
    let token = || vec![Token::new(&ring::rand::SystemRandom::new()).unwrap()];
    for (address, why) in [
        ("192.0.2.1:7448", "policy.toml has no network that allows it"),
        ("224.0.0.1:7448", "it is no address of one host"),
        ("0.0.0.0:7448", "it is no address of one host"),
        ("[::ffff:192.0.2.1]:7448", "policy.toml has no network that allows it"),
    ] {
        let to = address.parse().unwrap();
        let refused =
            reason(sender.ask(&Request::Send { order: order(&plan), to, tokens: token() }));
        assert!(refused.contains(why), "{address}: {refused}");
    }
    site.wait_for("host0001", &["refused", "send a flow", "may not send to 192.0.2.1"]);
    let from = "192.0.2.1".parse().unwrap();
    let refused = reason(sender.ask(&Request::Receive { order: order(&plan), from }));
    assert!(refused.starts_with("may not receive from 192.0.2.1"), "{refused}");
    drop(sender);
    works(&site);
}

const LIMITED: &str = "[limits]\nconnections = 8\nduration = \"2 s\"\nsent = \"64 MiB\"\n\
    logs = \"1 MiB\"\n[[network]]\nnetwork = \"127.0.0.0/8\"\nsend = true\nreceive = true\n\
    rate = \"200 Mb/s\"\n";

#[test]
fn a_rate_above_the_policy_is_refused_and_full_speed_is_held_to_it() {
    let mut site = Site::new(&["host0000"]);
    site.add("host0001", |folder| policy(folder, LIMITED));
    // Half of 2 Gb/s.
    let paced = plan(2, 300, &incast(0.5, ""), "");
    let error = site.run(&paced, &Quiet::default()).unwrap_err().to_string();
    assert!(error.contains("is more than the host's policy allows (0.2 Gb/s"), "{error}");
    site.wait_for("host0001", &["refused", "send a flow", "0.2 Gb/s"]);
    let full = plan(2, 1000, &incast(1.0, ""), "");
    let record = site.run(&full, &Quiet::default()).unwrap();
    assert_eq!(record.connections[0].held_to_bps, Some(200_000_000));
    // A packet and the headers of its frames are 2,268 B. What a sleeping sender misses is let
    // through at once, 2 ms of it; no span is faster than that, and the fastest tenth of a second
    // of a busy sender is nearly as fast.
    let sent: Vec<i64> = sent(&record).iter().map(|(at, _)| *at).collect();
    let packet_ns = 2268 * 8 * 5;
    let within = |ns: i64| {
        let end = |first: usize| sent.partition_point(|at| *at < sent[first] + ns);
        (0..sent.len()).map(|first| (end(first) - first) as i64).max().unwrap()
    };
    let let_through = |ns: i64| (ns + 2_000_000) / packet_ns + 2;
    for ns in [10_000_000, 100_000_000, 1_000_000_000] {
        assert!(within(ns) <= let_through(ns), "{} in {ns} ns", within(ns));
    }
    assert!(within(100_000_000) * packet_ns > 90_000_000, "{}", within(100_000_000));
}

#[test]
fn runs_longer_than_the_policy_and_too_many_bytes_are_stopped() {
    let mut site = Site::new(&["host0000"]);
    let open = LIMITED.replace("rate = \"200 Mb/s\"\n", "").replace("64 MiB", "4 MiB");
    site.add("host0001", |folder| policy(folder, &open));
    let long = plan(2, 3000, &incast(1.0, ""), "");
    let error = site.run(&long, &Quiet::default()).unwrap_err().to_string();
    assert!(error.contains("limits.duration = 2 s"), "{error}");
    // 4 MiB are sent long before a second has passed.
    let record = site.run(&plan(2, 1500, &incast(1.0, ""), ""), &Quiet::default()).unwrap();
    assert!(record.partial);
    assert!(record.hosts.iter().any(|host| host.stopped.contains("limits.sent")), "{record:?}");
    site.wait_for("host0001", &["stopped", "limits.sent"]);
    let packets = record.connections[0].logs[0].as_ref().unwrap().records;
    assert!(packets <= (4 << 20) / 2048, "{packets}");
    assert_eq!(site.link("host0001").status().unwrap().run, None);
}

#[test]
fn logs_over_the_quota_stop_the_run_and_what_was_noted_is_told() {
    let mut site = Site::new(&["host0000"]);
    let small = LIMITED.replace("rate = \"200 Mb/s\"\n", "").replace("1 MiB", "64 KiB");
    let small = small.replace("64 MiB", "64 GiB").replace("2 s", "60 s");
    site.add("host0001", |folder| policy(folder, &small));
    let long = plan(2, 60_000, &incast(1.0, ""), "");
    let record = site.run(&long, &Quiet::default()).unwrap();
    assert!(record.partial);
    site.wait_for("host0001", &["stopped", "limits.logs = 64 KiB"]);
    // What was kept is read; what was noted and not kept is told.
    let measured = measured(&site, &long, &record);
    let flow = &measured.flows[0];
    assert!(measured.unkept > 0 && flow.received > flow.sent, "{flow:?}");
    assert!(flow.sent > 1000 && flow.unlogged > 0, "{flow:?}");
    let words = remarks(&long, &measured).join("\n");
    assert!(words.contains("records of packets were noted and are in no log"), "{words}");
    assert_eq!(site.link("host0001").status().unwrap().run, None);
}

/// The time of a line of an audit log, in seconds of its day. Agents write UTC.
fn seconds_of_day(line: &str) -> f64 {
    let (_, time) = line.split_once("\"time\":\"").unwrap();
    let (time, _) = time.split_once('Z').unwrap();
    let (_, clock) = time.split_once('T').unwrap();
    clock.split(':').fold(0.0, |sum, part| 60.0 * sum + part.parse::<f64>().unwrap())
}

/// The controller goes without a word, as a machine that loses power does: sending stops in 3 s.
#[test]
fn without_a_controller_sending_stops_within_three_seconds() {
    let site = Site::new(&TWO);
    let plan = plan(2, 60_000, &incast(1.0, ""), "");
    let request = Request::Begin { plan: "left alone".into(), duration_ns: 60_000_000_000 };
    let [mut receiver, mut sender] = TWO.map(|name| site.link(name));
    for link in [&mut receiver, &mut sender] {
        link.have_done(&request, "begin").unwrap();
    }
    let from = receiver.data.ip();
    let answer = receiver.ask(&Request::Receive { order: order(&plan), from }).unwrap();
    let Answer::Expected { tokens } = answer else { panic!("{answer:?}") };
    let to = receiver.data;
    sender.ask(&Request::Send { order: order(&plan), to, tokens }).unwrap();
    let at_ns = now_ns() + 100_000_000;
    for link in [&mut receiver, &mut sender] {
        link.have_done(&Request::Start { at_ns }, "start").unwrap();
    }
    // From here on it says nothing, and its connections stay open.
    let (hour, minute, second, nanosecond) = OffsetDateTime::now_utc().time().as_hms_nano();
    let minutes = 60.0 * f64::from(hour) + f64::from(minute);
    let silent = 60.0 * minutes + f64::from(second) + f64::from(nanosecond) / 1e9;
    let line = site.wait_for("host0001", &["stopped", "left alone", "lease ran out"]);
    // By the clock of the agent's log, which is this machine's.
    let took = (seconds_of_day(&line) - silent).rem_euclid(DAY_S);
    assert!(took <= 3.0, "{took} s");
    assert!(took >= 1.5, "it was to wait for a word: {took} s");
    drop((receiver, sender));
    std::thread::sleep(Duration::from_millis(300));
    works(&site);
}

/// A start far ahead does not give its controller leave to be silent until then.
#[test]
fn a_start_far_ahead_needs_a_controller_until_then() {
    let site = Site::new(&TWO);
    let plan = two_hosts();
    let [mut receiver, mut sender] = TWO.map(|name| begun(&site, name));
    let from = receiver.data.ip();
    let answer = receiver.ask(&Request::Receive { order: order(&plan), from }).unwrap();
    let Answer::Expected { tokens } = answer else { panic!("{answer:?}") };
    let to = receiver.data;
    sender.ask(&Request::Send { order: order(&plan), to, tokens }).unwrap();
    let at_ns = now_ns() + 50_000_000_000;
    for link in [&mut receiver, &mut sender] {
        link.have_done(&Request::Start { at_ns }, "start").unwrap();
    }
    let other = Site::new(&["host0009"]);
    let past = begun(&other, "host0009").ask(&Request::Start { at_ns: 1 });
    assert!(reason(past).contains("the start was"));
    site.wait_for("host0001", &["stopped", "lease ran out"]);
    assert!(now_ns() < at_ns, "it waited for the start");
    drop((receiver, sender));
    works(&site);
}

/// Requests that the audit log cannot keep are not done.
#[test]
fn what_cannot_be_noted_is_not_done() {
    let mut site = Site::new(&["host0000"]);
    site.add("host0001", |folder| {
        // Large enough that a new one is begun, where something stands in the way of the old.
        let audit = std::fs::File::create(folder.join("audit.jsonl")).unwrap();
        audit.set_len(65 << 20).unwrap();
        std::fs::create_dir(folder.join("audit.1.jsonl")).unwrap();
    });
    let mut link = site.link("host0001");
    let why = reason(link.have_done(&begin("unseen"), "begin"));
    assert!(why.starts_with("the audit log cannot be written"), "{why}");
    assert_eq!(link.status().unwrap().run, None);
}

/// A run that was begun and given no orders is not over before its lease is, and the name of a plan
/// fills no log.
#[test]
fn a_run_without_orders_is_preparing_and_names_are_short() {
    let site = Site::new(&TWO);
    let link = begun(&site, "host0000");
    let run = site.link("host0000").status().unwrap().run.unwrap();
    assert_eq!(run.state, State::Preparing);
    drop(link);
    site.wait_for("host0000", &["stopped", "its controller has gone"]);
    let why = reason(site.link("host0000").have_done(&begin(&"x".repeat(60_000)), "begin"));
    assert!(why.contains("the plan's name has 60000 B"), "{why}");
    works(&site);
}

/// Orders that fail leave nothing that limits do not count.
#[test]
fn orders_that_fail_count_as_connections() {
    let site = Site::new(&TWO);
    let some = LIMITED.replace("rate = \"200 Mb/s\"\n", "").replace("64 MiB", "64 GiB");
    policy(&site.of_agent("host0001"), &some);
    let plan = two_hosts();
    let mut receiver = begun(&site, "host0000");
    let mut sender = begun(&site, "host0001");
    let (from, to) = (receiver.data.ip(), receiver.data);
    let mut refused = Vec::new();
    for round in 0..5u32 {
        let order = Order { paths: 4, connection: 10 * round, ..order(&plan) };
        let answer = receiver.ask(&Request::Receive { order: order.clone(), from }).unwrap();
        let Answer::Expected { mut tokens } = answer else { panic!("{answer:?}") };
        // The last connection of each is refused.
        tokens[3] = Token::new(&ring::rand::SystemRandom::new()).unwrap();
        refused.push(reason(sender.ask(&Request::Send { order, to, tokens })));
    }
    assert!(refused[0].ends_with("does not consent to be sent to"), "{refused:?}");
    assert!(refused[4].contains("limits.connections = 8"), "{refused:?}");
    drop((receiver, sender));
    works(&site);
}

/// Of packets that a receiver noted and could not keep, no loss is claimed.
#[test]
fn a_full_quota_of_the_receiver_is_no_loss() {
    let mut site = Site::new(&["host0001"]);
    let small = LIMITED.replace("rate = \"200 Mb/s\"\n", "").replace("1 MiB", "64 KiB");
    let small = small.replace("64 MiB", "64 GiB").replace("2 s", "60 s");
    site.add("host0000", |folder| policy(folder, &small));
    let long = plan(2, 60_000, &incast(1.0, ""), "");
    let record = site.run(&long, &Quiet::default()).unwrap();
    site.wait_for("host0000", &["stopped", "limits.logs = 64 KiB"]);
    let measured = measured(&site, &long, &record);
    let flow = &measured.flows[0];
    assert!(measured.unkept > 0 && !flow.is_known() && measured.partial, "{flow:?}");
    assert_eq!(measured.measured_bps(flow), None);
    // Packets under way when the receiver stopped are all that may be missing.
    let under_way = flow.sent - flow.received - measured.unkept;
    assert!(measured.lost() <= under_way, "{} of {under_way}", measured.lost());
}

/// One that goes on sending when the run is over does not keep the agent in it.
#[test]
fn a_sender_that_does_not_end_holds_nobody() {
    let site = Site::new(&TWO);
    let plan = two_hosts();
    let mut receiver = begun(&site, "host0000");
    let from = receiver.data.ip();
    let answer = receiver.ask(&Request::Receive { order: order(&plan), from }).unwrap();
    let Answer::Expected { tokens } = answer else { panic!("{answer:?}") };
    let mut stream = TcpStream::connect(receiver.data).unwrap();
    stream.write_all(&tokens[0].request()).unwrap();
    stream.read_exact(&mut [0; 32]).unwrap();
    drop(receiver);
    let until = Instant::now() + PATIENCE;
    let mut sequence = 0;
    while site.link("host0000").status().unwrap().run.is_some() {
        let header = Header { bytes: 24, connection: 0, sequence, sent_ns: 0 };
        let _ = stream.write_all(&header.to_bytes());
        sequence += 1;
        assert!(Instant::now() < until, "the agent is still in the run");
        std::thread::sleep(Duration::from_millis(200));
    }
    works(&site);
}

/// A controller whose connection ends is gone at once.
#[test]
fn a_connection_that_ends_ends_its_run() {
    let site = Site::new(&TWO);
    let link = begun(&site, "host0000");
    assert!(site.link("host0000").status().unwrap().run.is_some());
    let why = reason(site.link("host0000").have_done(&begin("second"), "begin"));
    assert!(why.starts_with("takes part in run attack of boss"), "{why}");
    drop(link);
    let until = Instant::now() + PATIENCE;
    while site.link("host0000").status().unwrap().run.is_some() {
        assert!(Instant::now() < until, "the run is still there");
    }
    works(&site);
}

#[test]
fn anybody_with_the_role_stops_a_run() {
    let site = Site::new(&TWO);
    let plan = plan(2, 60_000, &incast(1.0, ""), "");
    let record = std::thread::scope(|scope| {
        let run = scope.spawn(|| site.run(&plan, &Quiet::default()));
        std::thread::sleep(Duration::from_millis(1500));
        site.link("host0001").stop().unwrap();
        run.join().unwrap().unwrap()
    });
    assert!(
        record.partial && record.stopped_ns.is_some_and(|ns| ns < 60_000_000_000),
        "{record:?}"
    );
    site.wait_for("host0001", &["stopped", "stopped by controller boss"]);
    works(&site);
}

#[test]
fn giant_random_and_unknown_frames_end_their_connection_alone() {
    let site = Site::new(&TWO);
    let config = tls::client(&site.keys()).unwrap();
    let known = site.known("host0000");
    let who = Identity { name: known.name.clone(), role: Role::Agent };
    let connect = || {
        let name = tls::server_name(&who).unwrap();
        Channel::connect(known.address, config.clone(), name).unwrap()
    };
    let gone = |mut channel: Channel| {
        let until = Instant::now() + PATIENCE;
        loop {
            match channel.receive::<Answer>(Duration::from_millis(100)) {
                Ok(None) => assert!(Instant::now() < until, "the connection is still there"),
                Ok(Some(answer)) => panic!("{answer:?}"),
                Err(_) => return,
            }
        }
    };
    // A frame of 4 GiB, one of no known kind, one that is no message, one of no known question.
    for raw in [
        b"\xff\xff\xff\xffM".to_vec(),
        b"\0\0\0\x01G?".to_vec(),
        [b"\0\0\x01\0M".to_vec(), bytes(256)].concat(),
        b"\0\0\0\x10M{\"ask\":\"launch\"}".to_vec(),
    ] {
        let mut channel = connect();
        channel.send_raw(&raw).unwrap();
        gone(channel);
    }
    site.wait_for("host0000", &["refused", "message", "4294967295 bytes"]);
    site.wait_for("host0000", &["refused", "message", "cannot be read"]);
    // Random bytes instead of TLS, many connections at a time, and one that says nothing.
    let mut open = Vec::new();
    for _ in 0..50 {
        if let Ok(mut stream) = TcpStream::connect(known.address) {
            let _ = stream.write_all(&bytes(500));
            open.push(stream);
        }
    }
    let silent = TcpStream::connect(known.address);
    std::thread::sleep(Duration::from_millis(200));
    drop(open);
    drop(silent);
    std::thread::sleep(Duration::from_millis(200));
    works(&site);
}

/// Names lead nowhere: what a controller may name is a number or stands in a log.
#[test]
fn no_name_leads_out_of_the_folder() {
    let site = Site::new(&TWO);
    let mut link = site.link("host0000");
    let name = "../../../../tmp/clearlane-was-here";
    link.have_done(&begin(name), "begin").unwrap();
    let plan = two_hosts();
    let from = link.data.ip();
    let strange = Order { source: name.into(), group: "/etc/passwd".into(), ..order(&plan) };
    link.ask(&Request::Receive { order: strange, from }).unwrap();
    let inside: Vec<_> = walk(&site.of_agent("host0000"));
    assert!(inside.iter().any(|path| path.ends_with("spool/0-received.log")), "{inside:?}");
    assert!(!std::path::Path::new("/tmp/clearlane-was-here").exists());
    // The same connection twice, and mechanisms that name a file.
    let why = reason(link.ask(&Request::Receive { order: order(&plan), from }));
    assert!(why.starts_with("log of connection 0"), "{why}");
    let control = "when = \"dcqcn\"\nwhich = \"none\"\n[dcqcn]\npolicy = \"/etc/passwd\"\n";
    let order = Order { control: control.into(), acks: true, connection: 9, ..order(&plan) };
    let (to, tokens) = (link.data, vec![Token::new(&ring::rand::SystemRandom::new()).unwrap()]);
    let why = reason(link.ask(&Request::Send { order, to, tokens }));
    assert!(why.contains("names a file"), "{why}");
    drop(link);
    works(&site);
}

fn walk(folder: &std::path::Path) -> Vec<std::path::PathBuf> {
    let entries = std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
    entries.flat_map(|path| if path.is_dir() { walk(&path) } else { vec![path] }).collect()
}

#[test]
fn a_policy_that_anybody_may_write_is_none() {
    use std::os::unix::fs::PermissionsExt;
    let site = Site::new(&TWO);
    let path = site.of_agent("host0000").join("policy.toml");
    std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o666)).unwrap();
    let why = reason(site.link("host0000").have_done(&begin("x"), "begin"));
    assert!(why.contains("others than its owner may write it"), "{why}");
    std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o644)).unwrap();
    works(&site);
}

/// Connections that say nothing, more than are waited for at a time, keep nobody out.
#[test]
fn silent_connections_keep_nobody_out() {
    let site = Site::new(&TWO);
    let silent = ["host0001", "host0000"].map(|name| {
        let link = site.link(name);
        [link.data, link.known.address].map(|address| silent_at(address, 350))
    });
    assert_eq!(site.link("host0000").stop().unwrap(), None);
    // All of them are in front of it. The last is not late yet, so they were not waited for.
    let [_, [_, at_control]] = &silent;
    assert!(is_open(at_control.last().unwrap()));
    works(&site);
    drop(silent);
    // Each of them is one line at most; most are counted.
    let refused = site.audit("host0000").lines().filter(|line| line.contains("refused")).count();
    assert!((1..=25).contains(&refused), "{refused}");
}

#[test]
fn a_certificate_has_some_connections_and_no_more() {
    let site = Site::new(&TWO);
    let mut open: Vec<Link> = (0..8).map(|_| site.link("host0000")).collect();
    let error = Link::connect(&site.keys(), site.known("host0000")).err().unwrap().to_string();
    assert!(error.contains("8 connections of this certificate are open"), "{error}");
    // Another's certificate is not kept out by them.
    let viewer = Keys::read(&site.enrolled("anna", Role::Viewer)).unwrap();
    Link::connect(&viewer, site.known("host0000")).unwrap().status().unwrap();
    open.clear();
    std::thread::sleep(Duration::from_millis(300));
    works(&site);
}
