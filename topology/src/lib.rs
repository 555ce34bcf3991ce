//! The link graph of a multi-GPU machine: figures with provenance, routes, drawing.
