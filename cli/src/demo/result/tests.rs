//! Tests of telling who waits for whom.

use super::*;

#[test]
fn a_strip_waits_for_the_sides_whose_row_has_not_come() {
    let strips = Strip::split(4, 9, 3).unwrap();
    let mut state = strips[1].initial_state(&[7; 12]).unwrap();
    let set = |state: &mut Vec<u8>, word: usize, value: u8| state[word * 4] = value;
    set(&mut state, 0, 5);
    set(&mut state, 2, 5);
    set(&mut state, 3, 6);
    let waiting = Waiting::of(&strips[1], &state, 9).unwrap().unwrap();
    assert_eq!(
        waiting.to_string(),
        "kernel `strip-01` finished 5 of 9 iterations and waits for a row of strip-00"
    );
    set(&mut state, 3, 5);
    let waiting = Waiting::of(&strips[1], &state, 9).unwrap().unwrap();
    assert_eq!(waiting.on, ["strip-00", "strip-02"]);
    assert_eq!(Waiting::of(&strips[1], &state, 5), Ok(None));
    assert!(Waiting::of(&strips[1], &state[4..], 9).is_err());
}

#[test]
fn the_border_waits_for_nobody() {
    let strips = Strip::split(4, 2, 1).unwrap();
    let state = strips[0].initial_state(&[7; 8]).unwrap();
    let waiting = Waiting::of(&strips[0], &state, 9).unwrap().unwrap();
    assert_eq!(waiting.to_string(), "kernel `strip-00` finished 0 of 9 iterations");
}
