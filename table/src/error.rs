//! How a request is refused: the codes of Tablestore, each with its HTTP status.

/// Why, for programs. The name on the wire is that of the variant behind `OTS`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ErrorCode {
    /// 400
    ParameterInvalid,
    /// 400
    InvalidPK,
    /// 400
    UnsupportedOperation,
    /// 403
    AuthFailed,
    /// 403
    NoPermissionAccess,
    /// 403, or a row of a batch
    ConditionCheckFail,
    /// 403
    QuotaExhausted,
    /// 403; nothing was applied, trying again helps
    NotEnoughCapacityUnit,
    /// 404
    ObjectNotExist,
    /// 405
    MethodNotAllowed,
    /// 408
    RequestTimeout,
    /// 409
    ObjectAlreadyExist,
    /// 409; nothing was applied, trying again helps
    RowOperationConflict,
    /// 413
    RequestBodyTooLarge,
    /// 500
    InternalServerError,
    /// 503; nothing was applied, trying again helps
    ServerBusy,
    /// 503; it may or may not have been applied, clients do not repeat writes
    Timeout,
    /// A row of an atomic batch
    DataOutOfRange,
}

impl ErrorCode {
    /// As on the wire.
    pub fn as_str(self) -> &'static str {
        match self {
            ErrorCode::ParameterInvalid => "OTSParameterInvalid",
            ErrorCode::InvalidPK => "OTSInvalidPK",
            ErrorCode::UnsupportedOperation => "OTSUnsupportedOperation",
            ErrorCode::AuthFailed => "OTSAuthFailed",
            ErrorCode::NoPermissionAccess => "OTSNoPermissionAccess",
            ErrorCode::ConditionCheckFail => "OTSConditionCheckFail",
            ErrorCode::QuotaExhausted => "OTSQuotaExhausted",
            ErrorCode::NotEnoughCapacityUnit => "OTSNotEnoughCapacityUnit",
            ErrorCode::ObjectNotExist => "OTSObjectNotExist",
            ErrorCode::MethodNotAllowed => "OTSMethodNotAllowed",
            ErrorCode::RequestTimeout => "OTSRequestTimeout",
            ErrorCode::ObjectAlreadyExist => "OTSObjectAlreadyExist",
            ErrorCode::RowOperationConflict => "OTSRowOperationConflict",
            ErrorCode::RequestBodyTooLarge => "OTSRequestBodyTooLarge",
            ErrorCode::InternalServerError => "OTSInternalServerError",
            ErrorCode::ServerBusy => "OTSServerBusy",
            ErrorCode::Timeout => "OTSTimeout",
            ErrorCode::DataOutOfRange => "OTSDataOutOfRange",
        }
    }

    /// The HTTP status of an answer that consists of this error.
    pub fn status(self) -> u16 {
        match self {
            ErrorCode::ParameterInvalid
            | ErrorCode::InvalidPK
            | ErrorCode::UnsupportedOperation
            | ErrorCode::DataOutOfRange => 400,
            ErrorCode::AuthFailed
            | ErrorCode::NoPermissionAccess
            | ErrorCode::ConditionCheckFail
            | ErrorCode::QuotaExhausted
            | ErrorCode::NotEnoughCapacityUnit => 403,
            ErrorCode::ObjectNotExist => 404,
            ErrorCode::MethodNotAllowed => 405,
            ErrorCode::RequestTimeout => 408,
            ErrorCode::ObjectAlreadyExist | ErrorCode::RowOperationConflict => 409,
            ErrorCode::RequestBodyTooLarge => 413,
            ErrorCode::InternalServerError => 500,
            ErrorCode::ServerBusy | ErrorCode::Timeout => 503,
        }
    }
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
