//! Files against programs that others wrote: clients of tus from npm and PyPI, a server of S3.

mod clients;
mod moving;
mod s3;
mod servers;
