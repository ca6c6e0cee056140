//! What can go wrong between a client and its server.

use orchestrator_api::problem::Problem;
use orchestrator_store::StoreError;

/// A request that was not carried out, or of which that is not known.
#[derive(Debug, thiserror::Error)]
pub enum ClientError {
    /// The address makes no sense.
    #[error("{url:?} is no address of a server: {message}; write it as http://127.0.0.1:8000")]
    BadUrl {
        /// The address.
        url: String,
        /// Why.
        message: String,
    },
    /// The server does not answer.
    #[error("cannot reach {url}: {message}; is the server running, and is the address right?")]
    Unreachable {
        /// The server.
        url: String,
        /// Why.
        message: String,
        /// Whether it may have got the request: then it is not known whether it carried it out.
        sent: bool,
    },
    /// The server says why not.
    #[error("{}", told(.0))]
    Refused(Box<Problem>),
    /// The answer is not one of this API.
    #[error("{url} answered something else than an orchestrator does ({status}): {message}")]
    Strange {
        /// The server.
        url: String,
        /// The status.
        status: u16,
        /// What was expected.
        message: String,
    },
}

/// What a server said: of several fields that are wrong, each on a line of its own. A single one stands in the detail.
fn told(problem: &Problem) -> String {
    let fields = problem.errors.iter().filter(|_| problem.errors.len() > 1);
    let lines = fields.map(|field| format!("\n  {} {}", field.pointer, field.message));
    format!("{}{}", problem.detail, lines.collect::<String>())
}

impl ClientError {
    /// The error of a request that does no harm when it was carried out.
    pub(crate) fn nothing_done(self) -> Self {
        match self {
            ClientError::Unreachable { url, message, .. } => {
                ClientError::Unreachable { url, message, sent: false }
            }
            other => other,
        }
    }

    /// Whether the server will never take this very request, however often it is repeated.
    pub fn is_refusal(&self) -> bool {
        match self {
            ClientError::BadUrl { .. } => true,
            ClientError::Refused(problem) => !problem.retryable && (400..500).contains(&problem.status),
            ClientError::Unreachable { .. } | ClientError::Strange { .. } => false,
        }
    }

    /// Whether what was asked for is not there.
    pub fn is_not_found(&self) -> bool {
        matches!(self, ClientError::Refused(problem) if problem.status == 404)
    }

    /// Whether the server is away for a moment, and has not carried the request out: it cannot be reached, or is about to end.
    pub(crate) fn is_away(&self) -> bool {
        match self {
            ClientError::Unreachable { sent, .. } => !sent,
            ClientError::Refused(problem) => problem.code == STOPPING,
            ClientError::BadUrl { .. } | ClientError::Strange { .. } => false,
        }
    }
}

/// What a server says that is about to end.
const STOPPING: &str = "store_closed";

/// The words for errors that this program knows, so that they stay the same behind a server.
const CODES: [&str; 11] = [
    "invalid",
    "bad_parameter",
    "too_large",
    "no_such_path",
    "store_unreachable",
    "store_not_writable",
    "store_busy",
    "store_closed",
    "outcome_unknown",
    "database",
    "moved",
];

impl From<ClientError> for StoreError {
    fn from(error: ClientError) -> Self {
        let text = error.to_string();
        match error {
            ClientError::Unreachable { message, sent: true, .. } => {
                StoreError::Unknown { source: format!("the server was lost: {message}").into() }
            }
            ClientError::Unreachable { url, message, sent: false } => StoreError::Unreachable {
                place: url,
                advice: "is the server running, and is the address right?",
                source: message.into(),
            },
            ClientError::Refused(problem) => {
                let code = CODES.into_iter().find(|code| *code == problem.code).unwrap_or("server");
                StoreError::Remote {
                    code,
                    status: problem.status,
                    message: text,
                    retryable: problem.retryable,
                }
            }
            ClientError::Strange { status, .. } => {
                StoreError::Remote { code: "strange_answer", status, message: text, retryable: false }
            }
            ClientError::BadUrl { .. } => StoreError::Invalid(text),
        }
    }
}
