//! The measurements of the number issuer: in process and through Redis.

mod redis;
mod segment;
mod switch;

pub(super) use redis::RedisSegment;
pub(super) use segment::Segment;
pub(super) use switch::SegmentSwitch;

/// The tag of all measurements that need one.
const TAG: &str = "order";
