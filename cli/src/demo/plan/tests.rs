//! Tests of checking the demo's arguments.

use clap::Parser;

use super::*;
use crate::args::{Arguments, Command};

fn plan(arguments: &[&str]) -> Result<Plan, Failure> {
    let typed = ["hopwise", "demo"].iter().chain(arguments);
    match Arguments::try_parse_from(typed).unwrap().command {
        Command::Demo(arguments) => Plan::new(&arguments),
        other => panic!("not the demo: {other:?}"),
    }
}

fn refused(arguments: &[&str]) -> String {
    match plan(arguments) {
        Err(Failure::Usage(message)) => message,
        other => panic!("{arguments:?} gave {other:?}"),
    }
}

#[test]
fn one_device_is_drained_midway_unless_there_is_one_only() {
    let midway = Drain { device: 0, iteration: 200 };
    assert_eq!(plan(&[]).unwrap().drains, [midway]);
    assert_eq!(plan(&["--devices", "host:1"]).unwrap().drains, []);
    assert_eq!(plan(&["--no-drain"]).unwrap().drains, []);
}

#[test]
fn drains_are_put_into_order() {
    let drains = plan(&["--drain", "2@30", "--drain", "1@10"]).unwrap().drains;
    assert_eq!(drains.iter().map(|drain| drain.device).collect::<Vec<_>>(), [1, 2]);
}

#[test]
fn neighbours_share_devices_and_every_device_has_work() {
    let plan = plan(&["--kernels", "7"]).unwrap();
    let devices: Vec<_> = (0..7).map(|strip| plan.device_of(strip)).collect();
    assert_eq!(devices, [0, 0, 0, 1, 1, 2, 2]);
}

#[test]
fn wrong_arguments_are_told_with_what_is_allowed() {
    assert!(refused(&["--drain", "3@5"]).contains("the devices are 0 to 2"));
    assert!(refused(&["--drain", "0@400"]).contains("iteration 0 to 399"));
    assert!(refused(&["--drain", "0@5", "--drain", "0@6"]).contains("drained twice"));
    assert!(refused(&["--devices", "host:1", "--drain", "0@5"]).contains("leave at least one"));
    assert!(refused(&["--kernels", "513"]).contains("ask for 1 to 512"));
    assert!(refused(&["--contrast", "0"]).contains("1 to 255"));
    assert!(refused(&["--rate", "0.5"]).contains("0.0005 to 0.25"));
}
