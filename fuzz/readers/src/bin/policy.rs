//! Congestion control policy files: read, meant, written and read again.
#![no_main]

use clearlane_congestion::mechanisms::dcqcn::ENTRY;
use clearlane_congestion::policy_file::CongestionControlPolicy;
use clearlane_fuzz::{FILE, one_line, refused, text};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|data: &[u8]| {
    let text = text(data);
    let (policy, oddities) = match CongestionControlPolicy::read(&text, FILE) {
        Ok(read) => read,
        Err(error) => return refused(&error),
    };
    let lines = text.lines().count();
    for odd in &oddities {
        one_line(&odd.to_string());
        assert!((1..=lines).contains(&odd.line), "{odd}");
    }
    let (again, _) = CongestionControlPolicy::read(&policy.write(), FILE).expect("it was written");
    assert!(again == policy, "a policy comes back as another");
    match policy.meaning(FILE) {
        Err(error) => refused(&error),
        Ok(meaning) => {
            meaning.unsaid.iter().for_each(|sentence| one_line(sentence));
            // What the parameters say is what is written of them, up to what is said of it.
            let (drafted, said) =
                CongestionControlPolicy::of(&meaning.values).expect("read before");
            said.iter().for_each(|sentence| one_line(sentence));
            let drafted = drafted.meaning(FILE).expect("it was drafted");
            // One sentence is always there: which keys are left out.
            for of in ENTRY.parameters.iter().filter(|_| said.len() == 1) {
                let (meant, drafted) = (meaning.values.get(of), drafted.values.get(of));
                assert_eq!(meant, drafted, "{}", of.name);
            }
        }
    }
});
