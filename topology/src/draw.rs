//! Drawings of a machine: for a terminal, for Graphviz, and for a report.

mod dot;
mod groups;
mod svg;
mod table;
#[cfg(test)]
mod tests;
mod tree;
