//! Cards that several APIs list are joined, twins are not.

use super::*;

fn card(api: Api, device_id: u32, address: Option<&str>) -> Adapter {
    Adapter {
        name: format!("card {device_id}"),
        kind: AdapterKind::Discrete,
        pci_address: address.map(String::from),
        vendor_id: 0x10de,
        device_id,
        accesses: vec![Access { api, driver: String::new() }],
    }
}

fn merged(lists: Vec<Vec<Adapter>>) -> Vec<(Option<String>, usize)> {
    let mut known = Vec::new();
    for list in lists {
        merge(&mut known, list);
    }
    known.into_iter().map(|adapter| (adapter.pci_address, adapter.accesses.len())).collect()
}

const FIRST: Option<&str> = Some("0000:01:00.0");
const SECOND: Option<&str> = Some("0000:02:00.0");

fn listed(addresses: &[(Option<&str>, usize)]) -> Vec<(Option<String>, usize)> {
    addresses.iter().map(|&(address, count)| (address.map(String::from), count)).collect()
}

#[test]
fn one_card_through_two_apis_is_listed_once() {
    let lists = vec![vec![card(Api::Vulkan, 1, FIRST)], vec![card(Api::Dx12, 1, FIRST)]];
    assert_eq!(merged(lists), listed(&[(FIRST, 2)]));
}

#[test]
fn one_card_through_two_drivers_of_one_api_is_listed_once() {
    let both = vec![card(Api::Vulkan, 1, FIRST), card(Api::Vulkan, 1, FIRST)];
    let dx12 = vec![card(Api::Dx12, 1, FIRST)];
    assert_eq!(merged(vec![both.clone()]), listed(&[(FIRST, 2)]));
    assert_eq!(merged(vec![both.clone(), dx12.clone()]), listed(&[(FIRST, 3)]));
    assert_eq!(merged(vec![dx12, both]), listed(&[(FIRST, 3)]));
    let mut known = Vec::new();
    let three = [FIRST, FIRST, SECOND].map(|address| card(Api::Vulkan, 1, address));
    assert_eq!(merge(&mut known, three.to_vec()), [true, false, true]);
}

#[test]
fn a_missing_address_is_filled_in_from_the_other_api() {
    let lists = vec![vec![card(Api::Vulkan, 1, None)], vec![card(Api::Dx12, 1, FIRST)]];
    assert_eq!(merged(lists), listed(&[(FIRST, 2)]));
}

#[test]
fn twins_stay_two_though_dx12_gives_both_one_address() {
    let vulkan = vec![card(Api::Vulkan, 1, FIRST), card(Api::Vulkan, 1, SECOND)];
    let dx12 = vec![card(Api::Dx12, 1, FIRST), card(Api::Dx12, 1, FIRST)];
    assert_eq!(merged(vec![vulkan, dx12.clone()]), listed(&[(FIRST, 2), (SECOND, 2)]));
    assert_eq!(merged(vec![dx12]), listed(&[(None, 1), (None, 1)]));
}

#[test]
fn different_cards_are_not_joined() {
    let other_model = vec![vec![card(Api::Vulkan, 1, None)], vec![card(Api::Dx12, 2, None)]];
    assert_eq!(merged(other_model), listed(&[(None, 1), (None, 1)]));
    let other_slot = vec![vec![card(Api::Vulkan, 1, FIRST)], vec![card(Api::Dx12, 1, SECOND)]];
    assert_eq!(merged(other_slot), listed(&[(FIRST, 1), (SECOND, 1)]));
    let one_api = vec![vec![card(Api::Vulkan, 1, None), card(Api::Vulkan, 1, None)]];
    assert_eq!(merged(one_api), listed(&[(None, 1), (None, 1)]));
}

#[test]
fn an_adapter_is_printed_on_one_line() {
    let mut adapter = card(Api::Vulkan, 7, FIRST);
    adapter.accesses[0].driver = String::from("NVIDIA 550.54");
    adapter.accesses.push(Access { api: Api::Dx12, driver: String::new() });
    assert_eq!(
        adapter.to_string(),
        "card 7 (discrete, PCI 0000:01:00.0) through Vulkan [NVIDIA 550.54] and DX12"
    );
}
