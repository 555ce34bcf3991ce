//! hwloc files of all versions.
