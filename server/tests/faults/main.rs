//! Acknowledged writes survive kills, power cuts and a full disk: the real program, and the fault runs in short.

mod disk_full;
mod power_cut;
mod recovery;
