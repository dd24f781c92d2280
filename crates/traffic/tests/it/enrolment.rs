//! Enrolment: a token is good once, for whom it is for, and keys are renewed.

use crate::site::{PATIENCE, Raised, Site, is_open, silent_at};
use clearlane_lab::Unfinished;
use clearlane_traffic::audit::Audit;
use clearlane_traffic::enrolment::{Enrolment, EnrolmentToken, Joining, join};
use clearlane_traffic::keys::{Authority, Keys, Replace};
use clearlane_traffic::name::{Identity, Role};
use std::net::SocketAddr;
use std::sync::Mutex;
use std::sync::atomic::AtomicBool;
use std::time::{Duration, Instant};

#[test]
fn an_enrolment_token_is_good_once() {
    let site = Site::new(&["host0000"]);
    let controller = site.folder.join("controller");
    let authority = Authority::read(&controller).unwrap();
    let who = ["h7", "h8"].map(|name| Identity { name: name.parse().unwrap(), role: Role::Agent });
    let any = SocketAddr::from(([127, 0, 0, 1], 0));
    let random = ring::rand::SystemRandom::new();
    let enrolment = Enrolment::new(&site.keys(), authority, any, who.into(), &random).unwrap();
    let tokens: Vec<EnrolmentToken> = enrolment.tokens();
    let joined = Mutex::new(Vec::new());
    let audit = Audit::open(&controller).unwrap();
    let halt = AtomicBool::new(false);
    let told = |identity: &Identity, joining: Joining| {
        joined.lock().unwrap().push((identity.to_string(), joining));
        Ok(())
    };
    std::thread::scope(|scope| {
        scope.spawn(|| enrolment.wait(&audit, &halt, &told).unwrap());
        // What fails below ends the waiting too.
        let _raised = Raised(&halt);
        let folder = |name: &str| site.folder.join(name);
        let keys =
            join(&tokens[0], &folder("h7"), Replace::Nothing, &Unfinished::default()).unwrap();
        assert_eq!(keys.identity.to_string(), "agent h7");
        // Again, and with another's name.
        let error = join(&tokens[0], &folder("again"), Replace::Nothing, &Unfinished::default())
            .err()
            .unwrap()
            .to_string();
        assert!(error.contains("it is good once"), "{error}");
        let mut text = tokens[1].to_string();
        text.replace_range(..2, "h9");
        let error =
            join(&text.parse().unwrap(), &folder("h9"), Replace::Nothing, &Unfinished::default())
                .err()
                .unwrap()
                .to_string();
        assert!(error.contains("no token waits for agent h9"), "{error}");
        let viewer = tokens[1].to_string().replace(".agent.", ".controller.");
        let error =
            join(&viewer.parse().unwrap(), &folder("c"), Replace::Nothing, &Unfinished::default())
                .err()
                .unwrap()
                .to_string();
        assert!(error.contains("no token waits for controller h8"), "{error}");
        // A stranger who answers at the address of a token is not the token's authority.
        let mut pinned = tokens[1].to_string();
        let at = pinned.rfind('@').unwrap();
        pinned.replace_range(at - 4..at, "AAAA");
        let stranger = pinned.parse::<EnrolmentToken>().unwrap();
        let error = join(&stranger, &folder("s"), Replace::Nothing, &Unfinished::default())
            .err()
            .unwrap()
            .to_string();
        assert!(error.contains("not that of the token's authority"), "{error}");
        // Connections that say nothing, more than are waited for at a time, keep nobody out.
        let at = tokens[1].at;
        let silent = silent_at(at, 350);
        join(&tokens[1], &folder("h8"), Replace::Nothing, &Unfinished::default()).unwrap();
        // The last is not late yet, so they were not waited for.
        assert!(is_open(silent.last().unwrap()));
    });
    let joined = joined.into_inner().unwrap();
    let stored = |name: &str| (format!("agent {name}"), Joining::Stored);
    assert_eq!(joined, [stored("h7"), stored("h8")]);
    assert!(!site.folder.join("again").exists() && !site.folder.join("h9").exists());
    let log = std::fs::read_to_string(controller.join("audit.jsonl")).unwrap();
    assert!(log.lines().filter(|line| line.contains("\"refused\"")).count() >= 4, "{log}");
}

/// A certificate that is sent and not kept, as when the host's disk is full, is told as that.
#[test]
fn a_host_that_does_not_say_that_it_has_its_certificate_is_told() {
    let site = Site::new(&["host0000"]);
    let controller = site.folder.join("controller");
    let authority = Authority::read(&controller).unwrap();
    let who = vec![Identity { name: "h7".parse().unwrap(), role: Role::Agent }];
    let any = SocketAddr::from(([127, 0, 0, 1], 0));
    let random = ring::rand::SystemRandom::new();
    let enrolment = Enrolment::new(&site.keys(), authority, any, who, &random).unwrap();
    let token = enrolment.tokens()[0].clone();
    let (audit, halt) = (Audit::open(&controller).unwrap(), AtomicBool::new(false));
    let joined = Mutex::new(Vec::new());
    let told = |_: &Identity, joining| {
        joined.lock().unwrap().push(joining);
        Ok(())
    };
    std::thread::scope(|scope| {
        scope.spawn(|| enrolment.wait(&audit, &halt, &told).unwrap());
        let _raised = Raised(&halt);
        // A file stands where the folder of keys is to be: the controller is not asked.
        let folder = site.folder.join("file");
        std::fs::write(&folder, "").unwrap();
        assert!(
            join(&token, &folder.join("keys"), Replace::Nothing, &Unfinished::default()).is_err()
        );
        // An old key stands in the folder, which is found when the certificate is here.
        let folder = site.folder.join("half");
        std::fs::create_dir(&folder).unwrap();
        std::fs::write(folder.join("key.pem"), "").unwrap();
        assert!(join(&token, &folder, Replace::Nothing, &Unfinished::default()).is_err());
        let until = Instant::now() + PATIENCE;
        while joined.lock().unwrap().is_empty() && Instant::now() < until {
            std::thread::sleep(Duration::from_millis(20));
        }
    });
    assert_eq!(joined.into_inner().unwrap(), [Joining::Unsure]);
}

/// New keys in place of old ones; the old ones are whole until then.
#[test]
fn keys_are_renewed() {
    let site = Site::new(&["host0000"]);
    let controller = site.folder.join("controller");
    let before = std::fs::read(controller.join("cert.pem")).unwrap();
    let authority = std::fs::read(controller.join("ca.pem")).unwrap();
    assert!(!site.keys().ends_within(300) && site.keys().ends_within(400));
    Authority::renew(&controller, &Unfinished::default()).unwrap();
    assert_ne!(std::fs::read(controller.join("cert.pem")).unwrap(), before);
    assert_eq!(std::fs::read(controller.join("ca.pem")).unwrap(), authority);
    assert_eq!(site.link("host0000").status().unwrap().run, None);
    // A controller's folder is no place for another's keys.
    let error = Authority::init(&controller, "boss".parse().unwrap(), &Unfinished::default())
        .err()
        .unwrap()
        .to_string();
    assert!(error.contains("holds keys already"), "{error}");
    let agent = site.of_agent("host0000");
    let error = Authority::renew(&agent, &Unfinished::default()).err().unwrap().to_string();
    assert!(error.contains("only the folder that `clearlane traffic init` made"), "{error}");
    let files = |folder: &std::path::Path| {
        let names = std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().file_name());
        let mut names: Vec<_> = names.collect();
        names.sort();
        names
    };
    assert_eq!(files(&controller), ["ca-key.pem", "ca.pem", "cert.pem", "key.pem"]);
    assert!(Keys::read(&controller).is_ok());
}
