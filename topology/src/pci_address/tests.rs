//! PCI addresses: every way to write them, and what is not one.

use proptest::prelude::*;

use super::PciAddress;

#[test]
fn every_way_of_writing_is_read() {
    let expected = PciAddress { domain: 0, bus: 0x18, device: 0, function: 0 };
    for text in ["18:00.0", "0000:18:00.0", "00000000:18:00.0", " 0000:18:00.0 ", "0000:18:00"] {
        assert_eq!(text.parse(), Ok(expected), "{text}");
    }
    let odd: PciAddress = "fffffff:ff:1F.7".parse().unwrap();
    assert_eq!(odd, PciAddress { domain: 0x0fff_ffff, bus: 0xff, device: 31, function: 7 });
}

#[test]
fn what_is_not_an_address_is_refused() {
    for text in
        ["", "18", "1:2:3:4.0", "0000:18:20.0", "000000000:18:00.0", "0000:1g:00.0", "+1:00.0"]
    {
        let error = text.parse::<PciAddress>().unwrap_err().to_string();
        assert!(error.contains(text) && error.contains("0000:18:00.0"), "{error}");
    }
}

proptest! {
    #[test]
    fn what_is_printed_is_read_back(
        domain: u32,
        bus: u8,
        device in 0_u8..32,
        function: u8,
    ) {
        let address = PciAddress { domain, bus, device, function };
        prop_assert_eq!(address.to_string().parse(), Ok(address));
    }
}
