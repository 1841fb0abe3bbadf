//! How a request is refused: the codes of Tablestore, each with its HTTP status.

macro_rules! codes {
    ($($(#[$about:meta])* $status:literal $code:ident,)*) => {
        /// Why, for programs. The name on the wire is that of the variant behind `OTS`.
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub enum ErrorCode {
            $(#[doc = stringify!($status)] $(#[$about])* $code,)*
        }

        impl ErrorCode {
            /// As on the wire.
            pub fn as_str(self) -> &'static str {
                match self {
                    $(ErrorCode::$code => concat!("OTS", stringify!($code)),)*
                }
            }

            /// The HTTP status of an answer that consists of this error.
            pub fn status(self) -> u16 {
                match self {
                    $(ErrorCode::$code => $status,)*
                }
            }
        }
    };
}

codes! {
    400 ParameterInvalid,
    400 InvalidPK,
    400 UnsupportedOperation,
    403 AuthFailed,
    403 NoPermissionAccess,
    /// Or a row of a batch.
    403 ConditionCheckFail,
    403 QuotaExhausted,
    /// Nothing was applied, trying again helps.
    403 NotEnoughCapacityUnit,
    404 ObjectNotExist,
    405 MethodNotAllowed,
    408 RequestTimeout,
    409 ObjectAlreadyExist,
    /// Nothing was applied, trying again helps.
    409 RowOperationConflict,
    413 RequestBodyTooLarge,
    500 InternalServerError,
    /// Nothing was applied, trying again helps.
    503 ServerBusy,
    /// It may or may not have been applied, clients do not repeat writes.
    503 Timeout,
    /// A row of an atomic batch.
    400 DataOutOfRange,
}

/// A refusal of a request, or of one row of a batch.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{}: {message}", code.as_str())]
pub struct TableError {
    /// Why, for programs.
    pub code: ErrorCode,
    /// Why, for people. Never empty.
    pub message: String,
}

impl TableError {
    /// A refusal.
    pub fn new(code: ErrorCode, message: impl Into<String>) -> TableError {
        TableError { code, message: message.into() }
    }

    /// A request that is wrong.
    pub fn invalid(message: impl Into<String>) -> TableError {
        TableError::new(ErrorCode::ParameterInvalid, message)
    }
}
