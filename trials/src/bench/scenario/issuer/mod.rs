//! The measurements of the number issuer: in process, through Redis, and as a process of its own.

mod redis;
mod rpc;
mod scramble;
mod segment;
mod snowflake;
mod switch;

pub(super) use redis::RedisSegment;
pub(super) use rpc::IssuerRpc;
pub(super) use scramble::ScrambleCodes;
pub(super) use segment::Segment;
pub(super) use snowflake::Snowflakes;
pub(super) use switch::SegmentSwitch;

/// The tag of all measurements that need one.
const TAG: &str = "order";
