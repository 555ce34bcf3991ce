//! Something that a text says once, or several times in the same way.

/// What is known of it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) enum Fact<T> {
    /// Nothing was said.
    #[default]
    Open,
    /// What was said.
    Known(T),
    /// It was said in two ways, and nobody knows which is right.
    Contradicted,
}

impl<T: PartialEq> Fact<T> {
    /// Takes what is said; false if it contradicts what was said before.
    pub(super) fn set(&mut self, value: T) -> bool {
        match self {
            Self::Open => *self = Self::Known(value),
            Self::Known(known) if *known == value => {}
            _ => *self = Self::Contradicted,
        }
        *self != Self::Contradicted
    }

    /// What was said, unless it was said in two ways.
    pub(super) fn known(self) -> Option<T> {
        match self {
            Self::Known(value) => Some(value),
            _ => None,
        }
    }
}
