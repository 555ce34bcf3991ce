//! The machine against a small model of the world, with every sequence of events.

use proptest::prelude::*;

use super::*;

const EVENTS: [Event; 12] = [
    Event::Reserved,
    Event::TwinCreated,
    Event::Held,
    Event::Copied,
    Event::StatesEqual,
    Event::StatesDiffer,
    Event::HandedOver,
    Event::Failed,
    Event::SourceLost,
    Event::Cancelled,
    Event::TimedOut,
    Event::RolledBack,
];

const INTERRUPTIONS: [Event; 4] =
    [Event::Failed, Event::SourceLost, Event::Cancelled, Event::TimedOut];

/// What the effects of a migration have done.
#[derive(Debug, Default)]
struct World {
    reserved: bool,
    twin: bool,
    held: bool,
    source_owns: bool,
    target_owns: bool,
    reservations_ended: u32,
    /// The effect whose outcome is awaited.
    pending: Option<Action>,
}

impl World {
    fn new() -> Self {
        Self { source_owns: true, ..Self::default() }
    }

    /// An effect begins, or something is given back at once.
    fn begin(&mut self, action: Action) {
        match action {
            Action::Reserve => assert!(!self.reserved && self.reservations_ended == 0),
            Action::CreateTwin => assert!(self.reserved && !self.twin),
            Action::Hold => assert!(self.reserved && self.twin && !self.held),
            Action::Copy | Action::Verify | Action::Repair => {
                assert!(self.reserved && self.twin && self.held && self.source_owns);
            }
            Action::HandOver => {
                assert!(self.reserved && self.twin && self.held && self.source_owns);
                // The hand-over takes both, whatever comes of it.
                (self.twin, self.held) = (false, false);
            }
            Action::ReleaseHold => assert!(std::mem::take(&mut self.held)),
            Action::DropTwin => assert!(std::mem::take(&mut self.twin)),
            Action::CancelReservation => self.end_reservation(),
        }
        let gives_back =
            [Action::ReleaseHold, Action::DropTwin, Action::CancelReservation].contains(&action);
        self.pending = (!gives_back).then_some(action);
    }

    /// The machine accepted an outcome.
    fn accepted(&mut self, event: Event) {
        match event {
            Event::Reserved => self.reserved = true,
            Event::TwinCreated => self.twin = true,
            Event::Held => self.held = true,
            Event::HandedOver => {
                (self.source_owns, self.target_owns) = (false, true);
                self.end_reservation();
            }
            _ => {}
        }
        self.pending = None;
    }

    fn end_reservation(&mut self) {
        assert!(std::mem::take(&mut self.reserved), "a reservation is released once");
        self.reservations_ended += 1;
    }

    fn check(&self, state: State) {
        assert!(self.source_owns != self.target_owns, "exactly one owner");
        if let State::Ended(end) = state {
            assert!(!self.reserved && !self.twin && !self.held, "nothing is left: {self:?}");
            assert!(self.pending.is_none());
            assert_eq!(self.target_owns, end == End::Moved);
        }
    }

    /// Which event is the outcome of the pending effect, going well.
    fn success(&self) -> Event {
        match self.pending {
            Some(Action::Reserve) => Event::Reserved,
            Some(Action::CreateTwin) => Event::TwinCreated,
            Some(Action::Hold) => Event::Held,
            Some(Action::Copy | Action::Repair) => Event::Copied,
            Some(Action::Verify) => Event::StatesEqual,
            Some(Action::HandOver) => Event::HandedOver,
            _ => Event::RolledBack,
        }
    }
}

fn take(step: Step, world: &mut World) -> State {
    for action in step.actions {
        world.begin(action);
    }
    world.check(step.state);
    step.state
}

fn is_before_hand_over(state: State) -> bool {
    !matches!(state, State::HandingOver | State::RollingBack { .. } | State::Ended(_))
}

/// Feeds an event; a refused one must change nothing.
fn feed(state: State, event: Event, world: &mut World) -> State {
    match advance(state, event) {
        Ok(step) => {
            assert!(!matches!(state, State::Ended(_)), "nothing happens after the end");
            world.accepted(event);
            take(step, world)
        }
        Err(refused) => {
            assert_eq!(refused, Refused { state, event });
            let interrupts = INTERRUPTIONS.contains(&event);
            assert!(!(interrupts && is_before_hand_over(state)), "{event:?} is legal in {state:?}");
            state
        }
    }
}

proptest! {
    #[test]
    fn no_sequence_of_events_breaks_an_invariant(
        events in prop::collection::vec(prop::sample::select(&EVENTS[..]), 0..60),
    ) {
        let mut world = World::new();
        let mut state = take(start(), &mut world);
        for event in events {
            state = feed(state, event, &mut world);
        }
        // From wherever that led, the way to an end is short.
        for _ in 0..10 {
            state = feed(state, world.success(), &mut world);
        }
        prop_assert!(matches!(state, State::Ended(_)), "{state:?}");
    }

    #[test]
    fn an_interruption_before_the_hand_over_leaves_the_source(
        steps in 0usize..6,
        event in prop::sample::select(&INTERRUPTIONS[..]),
        lost_later in any::<bool>(),
    ) {
        let mut world = World::new();
        let mut state = take(start(), &mut world);
        for _ in 0..steps {
            state = feed(state, world.success(), &mut world);
        }
        let too_late = state == State::HandingOver
            && matches!(event, Event::Cancelled | Event::TimedOut);
        state = feed(state, event, &mut world);
        if lost_later && !too_late {
            state = feed(state, Event::SourceLost, &mut world);
        }
        state = feed(state, world.success(), &mut world);
        if too_late {
            prop_assert_eq!(state, State::Ended(End::Moved));
        } else if lost_later || event == Event::SourceLost {
            prop_assert!(matches!(state, State::Ended(End::SourceLost(_))), "{:?}", state);
        } else {
            prop_assert!(matches!(state, State::Ended(End::Stayed(_))), "{:?}", state);
        }
    }
}

#[test]
fn the_straight_way_takes_six_effects() {
    let mut world = World::new();
    let mut state = take(start(), &mut world);
    let mut effects = Vec::new();
    while let Some(effect) = world.pending {
        effects.push(effect);
        state = feed(state, world.success(), &mut world);
    }
    assert_eq!(state, State::Ended(End::Moved));
    let expected = [
        Action::Reserve,
        Action::CreateTwin,
        Action::Hold,
        Action::Copy,
        Action::Verify,
        Action::HandOver,
    ];
    assert_eq!(effects, expected);
}

#[test]
fn states_that_differ_are_copied_again_once() {
    let mut world = World::new();
    let mut state = take(start(), &mut world);
    while !matches!(state, State::Verifying { .. }) {
        state = feed(state, world.success(), &mut world);
    }
    state = feed(state, Event::StatesDiffer, &mut world);
    assert_eq!((state, world.pending), (State::Repairing, Some(Action::Repair)));
    state = feed(state, Event::Copied, &mut world);
    assert_eq!(state, State::Verifying { repaired: true });
    state = feed(state, Event::StatesDiffer, &mut world);
    let reason = Reason::StatesDiffer;
    assert_eq!(state, State::RollingBack { reason, source_lost: false });
    state = feed(state, Event::RolledBack, &mut world);
    assert_eq!(state, State::Ended(End::Stayed(reason)));
}
