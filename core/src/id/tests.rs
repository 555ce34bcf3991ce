//! Ids: uniqueness, labels, the serialised form.

use std::collections::HashSet;

use proptest::prelude::*;

use super::{ChannelId, KernelId, LABEL_BYTES};

#[test]
fn ids_of_equal_names_differ_and_copies_are_equal() {
    let ids: HashSet<KernelId> = (0..1000).map(|_| KernelId::new("same")).collect();
    assert_eq!(ids.len(), 1000);
    let id = KernelId::new("copy");
    let copy = id;
    assert_eq!(id, copy);
    assert_eq!(size_of::<KernelId>(), 32);
}

#[test]
fn long_names_keep_both_ends() {
    let id = KernelId::new("diffusion-strip-of-the-large-image-0042");
    assert_eq!(id.name(), "diffusion-~mage-0042");
    assert_eq!(format!("{id}"), id.name());
    assert!(format!("{id:?}").starts_with("diffusion-~mage-0042#"));
}

#[test]
fn a_channel_shows_its_low_word() {
    assert_eq!(ChannelId::from_raw((7 << 32) | 5).low_word(), 5);
}

proptest! {
    #[test]
    fn any_name_fits_and_survives_serialisation(name in ".{0,60}") {
        let id = KernelId::new(&name);
        prop_assert!(id.name().len() <= LABEL_BYTES);
        if name.len() <= LABEL_BYTES {
            prop_assert_eq!(id.name(), name.replace('\0', " "));
        }
        let text = serde_json::to_string(&id).unwrap();
        let back: KernelId = serde_json::from_str(&text).unwrap();
        prop_assert_eq!(back, id);
        prop_assert_eq!(back.name(), id.name());
    }
}
