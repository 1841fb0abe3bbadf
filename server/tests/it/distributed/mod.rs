//! What only distributed tables can show (docs/CITUS.md). No transaction writes to two partitions.

mod layout;
