//! Devices that are listed more than once.

use super::super::xml::Element;
use super::machine::{Device, Machine, Place};
use crate::NodeKind;

impl Machine<'_> {
    /// The start of a `<pci>` stands twice, so that the device stands in itself.
    pub(super) fn repeated_line(&mut self, outer: &Element, repeated: &Element, place: Place) {
        self.observed.warn(repeated.line, "this <pci> stands in itself; it is read once");
        self.pci(repeated, place.detached());
        for child in outer.children.iter().filter(|child| !std::ptr::eq(*child, repeated)) {
            self.child(child, place.detached());
        }
    }

    /// A switch of an address that others have. Machines with switches behind switches have been
    /// seen to give several one address, and NCCL reads them as several. If they say the same
    /// about themselves, the first one keeps the address, else none of them has it for sure.
    pub(super) fn repeated_switch(
        &mut self,
        element: &Element,
        switch: &mut Device,
        known: &[usize],
    ) {
        let Some(address) = switch.node.pci.take() else { return };
        if self.repeated.insert((address, switch.host)) {
            let text = format!("several switches are listed as {address}, one at most is there");
            self.observed.warn(element.line, text);
        }
        for &known in known {
            let known = &mut self.devices[known].node;
            let says_the_same = known.kind == switch.node.kind
                && known.parent == switch.node.parent
                && known.numa_nodes == switch.node.numa_nodes
                && known.uplink == switch.node.uplink;
            known.pci = known.pci.filter(|_| says_the_same);
        }
    }

    /// A GPU or NIC is listed again: what the two say differently is unknown.
    pub(super) fn repeated_card(&mut self, element: &Element, known: &[usize], again: &[Device]) {
        let text = "a device of this address is listed before; it is read once";
        self.observed.warn(element.line, text);
        let Some(first) = again.first() else { return };
        let labels = |device: &Device| device.node.labels.clone();
        let known_labels: Vec<_> =
            known.iter().map(|&known| labels(&self.devices[known])).collect();
        let is_bare = known_labels.iter().chain([&labels(first)]).any(Vec::is_empty);
        let are_named_alike = is_bare || known_labels.into_iter().eq(again.iter().map(labels));
        for &known in known {
            let device = &mut self.devices[known];
            if !are_named_alike {
                device.node.labels.clear();
                device.order = None;
            }
            device.keep_what_is_said_again(first);
        }
    }
}

impl Device {
    fn keep_what_is_said_again(&mut self, again: &Self) {
        let (node, other) = (&mut self.node, &again.node);
        if node.numa_nodes != other.numa_nodes {
            node.numa_nodes.clear();
            self.cpu = None;
        }
        node.parent = node.parent.filter(|_| node.parent == other.parent);
        node.uplink = node.uplink.filter(|_| node.uplink == other.uplink);
        node.model = node.model.take().filter(|model| Some(model) == other.model.as_ref());
        if node.kind != other.kind {
            node.kind = NodeKind::PciDevice;
            node.labels.clear();
            self.is_contradicted = true;
        }
        match (&self.claims, &again.claims) {
            (Some(claims), Some(again)) if !claims.say_the_same(again) => {
                self.is_contradicted = true;
            }
            // The first listing was only the start of this one.
            (None, Some(_)) if self.node.labels.is_empty() && !self.is_contradicted => {
                self.claims.clone_from(&again.claims);
                self.order = again.order;
                self.node.labels.clone_from(&again.node.labels);
                self.node.architecture.clone_from(&again.node.architecture);
            }
            _ => {}
        }
        if self.is_contradicted {
            self.claims = None;
            self.node.architecture = None;
        }
    }
}
