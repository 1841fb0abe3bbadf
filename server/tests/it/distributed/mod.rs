//! Tests that need distributed tables (docs/CITUS.md). No transaction writes to two partitions.

mod layout;
