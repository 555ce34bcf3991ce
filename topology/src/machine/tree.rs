//! What hangs on what.

use crate::Observations;

/// What a node hangs on, from the nearest upwards. Empty for a node of which that is unknown.
pub(super) fn ancestors(all: &Observations, position: usize) -> Vec<usize> {
    let mut chain = Vec::new();
    let mut at = position;
    while let Some(parent) = all.nodes[at].parent {
        // A tree read from a file may bite its tail.
        if chain.contains(&parent) || parent == position {
            break;
        }
        chain.push(parent);
        at = parent;
    }
    chain
}

/// The way between two nodes through the tree.
pub(super) struct TreePath {
    /// Nodes from the one end up to, and without, the common ancestor; the end included.
    pub(super) up: Vec<usize>,
    /// The lowest node that both hang on; `None` where they meet above all known nodes.
    pub(super) top: Option<usize>,
    /// Nodes from the common ancestor down to the other end; the end included.
    pub(super) down: Vec<usize>,
}

/// The way from one node to another, if it is known of both on what they hang.
pub(super) fn path(all: &Observations, from: usize, to: usize) -> Option<TreePath> {
    let with_ancestors = |end| {
        let mut chain = vec![end];
        chain.extend(ancestors(all, end));
        chain
    };
    let (mut up, mut down) = (with_ancestors(from), with_ancestors(to));
    if up.len() < 2 || down.len() < 2 {
        return None;
    }
    let mut top = None;
    while let (Some(a), Some(b)) = (up.last(), down.last())
        && a == b
    {
        top = up.pop();
        down.pop();
    }
    if up.is_empty() || down.is_empty() {
        return None;
    }
    down.reverse();
    Some(TreePath { up, top, down })
}
