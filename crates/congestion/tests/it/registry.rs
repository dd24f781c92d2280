//! What holds for the entry of every mechanism.

use clearlane_congestion::mechanisms::{ALL, by_name};
use clearlane_congestion::{Entry, Parameter, ParameterError, Range, Value, Values};
use std::collections::BTreeSet;

/// Another value in range than the default.
fn other(parameter: &Parameter) -> Value {
    let ends = match &parameter.range {
        Range::Integer(least, most) => [Value::Integer(*least), Value::Integer(*most)],
        Range::Number(least, most) => [Value::Number(*least), Value::Number(*most)],
        Range::Time(least, most) => [Value::Time(*least), Value::Time(*most)],
        Range::Size(least, most) => [Value::Size(*least), Value::Size(*most)],
        Range::Rate(least, most) => [Value::Rate(*least), Value::Rate(*most)],
        Range::Word(words) => [Value::Word(words[0]), Value::Word(words[words.len() - 1])],
        Range::Table(most) => [Value::Table(vec![]), Value::Table(vec![(1, 2); *most])],
    };
    let [least, most] = ends;
    if least == parameter.default { most } else { least }
}

/// What a mechanism with these values is, written out.
fn built(entry: &Entry, set: &[(&Parameter, Value)]) -> Result<String, ParameterError> {
    let mut values = Values::default();
    for (parameter, value) in set {
        values.set(parameter, value.clone()).unwrap_or_else(|e| panic!("{}: {e}", entry.name));
    }
    (entry.build)(&values).map(|mechanism| format!("{mechanism:?}"))
}

#[test]
fn names_are_unique_and_found() {
    let names: BTreeSet<_> = ALL.iter().map(|entry| entry.name).collect();
    assert_eq!(names.len(), ALL.len());
    for entry in ALL {
        assert_eq!(by_name(entry.name).map(|found| found.name), Some(entry.name));
        let parameters: BTreeSet<_> = entry.parameters.iter().map(|p| p.name).collect();
        assert_eq!(parameters.len(), entry.parameters.len(), "{}", entry.name);
        let presets: BTreeSet<_> = entry.presets.iter().map(|p| p.name).collect();
        assert_eq!(presets.len(), entry.presets.len(), "{}", entry.name);
    }
    assert!(by_name("no-such-mechanism").is_none());
}

#[test]
fn everything_says_what_it_is_and_where_it_comes_from() {
    let sentence = |text: &str| !text.is_empty() && !text.ends_with('.') && !text.contains('\n');
    for entry in ALL {
        assert!(sentence(entry.summary) && sentence(entry.reference), "{}", entry.name);
        assert!(entry.notes.is_empty() || entry.notes.ends_with('.'), "{}", entry.name);
        for parameter in entry.parameters {
            assert!(sentence(parameter.summary), "{}: {}", entry.name, parameter.name);
        }
        for preset in entry.presets {
            assert!(sentence(preset.reference), "{}: {}", entry.name, preset.name);
        }
    }
}

#[test]
fn defaults_are_in_range_and_what_is_built_without_values() {
    for entry in ALL {
        let defaults = entry.parameters.iter().map(|p| (*p, p.default.clone()));
        let defaults: Vec<_> = defaults.collect();
        assert_eq!(built(entry, &defaults), built(entry, &[]));
        assert!(built(entry, &[]).is_ok(), "{}", entry.name);
    }
}

/// Reading a parameter as another kind than its own yields a constant, which this finds.
#[test]
fn every_parameter_makes_a_difference_or_is_refused() {
    for entry in ALL {
        let plain = built(entry, &[]).unwrap();
        for parameter in entry.parameters {
            if let Ok(changed) = built(entry, &[(*parameter, other(parameter))]) {
                assert_ne!(changed, plain, "{}: {} is not read", entry.name, parameter.name);
            }
        }
    }
}

#[test]
fn presets_build_from_parameters_of_their_mechanism() {
    for entry in ALL {
        for preset in entry.presets {
            for (parameter, _) in preset.values {
                let own = entry.parameters.iter().any(|p| std::ptr::eq(*p, *parameter));
                assert!(own, "{}: {}: {}", entry.name, preset.name, parameter.name);
            }
            assert!(built(entry, preset.values).is_ok(), "{}: {}", entry.name, preset.name);
        }
    }
}

#[test]
fn ports_have_settings_of_their_own_where_the_entry_says_so() {
    for entry in ALL {
        let own = |p: &&&Parameter| entry.parameters.iter().any(|own| std::ptr::eq(*own, **p));
        assert_eq!(entry.port_parameters.iter().filter(own).count(), entry.port_parameters.len());
        let mut mechanism = (entry.build)(&Values::default()).unwrap();
        if entry.port_parameters.is_empty() {
            assert!(mechanism.override_port(1, 2, &Values::default()).is_err());
        }
        let mut before = format!("{mechanism:?}");
        for (port, parameter) in (1..).zip(entry.port_parameters) {
            let mut values = Values::default();
            values.set(parameter, other(parameter)).unwrap();
            mechanism.override_port(1, port, &values).unwrap();
            let after = format!("{mechanism:?}");
            assert_ne!(after, before, "{}: {}", entry.name, parameter.name);
            before = after;
        }
    }
}
