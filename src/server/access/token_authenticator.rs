//! Checks the token of each request.
//!
//! In: the token that a request shows. Out: the caller, who can be asked for a right in a bank; or why the request is
//! refused. A separate thread checks the file once a second, so a revoked token is refused within about a second, and a
//! disk that hangs delays no request; a check that takes several seconds is reported. While the file cannot be read,
//! the tokens that were read last stay valid; if there is no file, no one has access. What a caller may do is decided
//! by the file as it is now, never as it was when the token was shown. A clock that is set back gives no expired token
//! back its rights.

use std::{
    collections::HashMap,
    fs,
    path::{Path, PathBuf},
    sync::{Arc, Mutex, RwLock},
    time::{Duration, Instant, SystemTime},
};

use crossbeam_channel::{RecvTimeoutError, Sender, bounded};
use governor::{
    Quota, RateLimiter,
    clock::{Clock as _, DefaultClock},
    middleware::StateInformationMiddleware,
    state::{InMemoryState, NotKeyed},
};
use jiff::Timestamp;
use tokio::sync::watch;

use super::{
    AccessError, TokenFile, TokenSecret,
    grant::{AccessRight, BankPrefix, TokenGrant},
    token_expiry::TokenExpiry,
    token_secret::{TokenHash, from_hex, hash},
};
use types::{model::Bank, sync};

/// The time between two checks of the file.
const CHECK_INTERVAL: Duration = Duration::from_secs(1);
/// A check that takes longer is reported: until it ends, no revocation takes effect.
const LONG_LOOK: Duration = Duration::from_secs(5);
/// The longest token that is considered, in bytes.
const MAX_TOKEN_BYTES: usize = 256;

/// Counts the requests of a token, and says how many are left.
type TokenRateLimiter = RateLimiter<NotKeyed, InMemoryState, DefaultClock, StateInformationMiddleware>;

/// Checks the token of each request.
pub struct TokenAuthenticator {
    file: Arc<WatchedTokenFile>,
    /// The token of the commands on this machine.
    local: TokenHash,
    /// Ends the thread that checks the file. The thread is not waited for, since a disk may hang.
    _stop: Sender<()>,
}

/// The file of tokens, and the tokens that are known from it.
struct WatchedTokenFile {
    path: PathBuf,
    known: RwLock<HashMap<TokenHash, Arc<KnownToken>>>,
    look: Mutex<TokenFileCheck>,
    /// Signals that the known tokens have changed.
    changed: watch::Sender<()>,
}

/// A token of the file.
struct KnownToken {
    grant: TokenGrant,
    expiry: TokenExpiry,
    limiter: Option<TokenRateLimiter>,
}

/// The last check of the file.
struct TokenFileCheck {
    stamp: Option<FileStamp>,
    problem: Option<String>,
    /// When the current check began; `None` between two checks, and once a long one was reported.
    began: Option<Instant>,
}

/// Who sends a request, and which right was checked last.
pub struct Caller {
    /// A token that was valid when it was shown; `None` if no tokens are required.
    token: Option<PresentedToken>,
    /// What was checked last.
    asked: Mutex<CheckedRight>,
}

/// A right that was checked for a caller's token, for the audit log.
#[derive(Debug, Clone, Default)]
pub struct CheckedRight {
    /// The right.
    pub right: Option<AccessRight>,
    /// The bank.
    pub bank: Option<Bank>,
    /// Whether the token does not give it.
    pub is_denied: bool,
}

impl CheckedRight {
    fn weight(&self) -> (bool, u8) {
        let right = match self.right {
            None => 0,
            Some(AccessRight::Read) => 1,
            Some(AccessRight::Write) => 2,
            Some(AccessRight::Forget | AccessRight::Admin) => 3,
        };
        (self.is_denied, right)
    }
}

/// A token that was shown, as it was at that time.
struct PresentedToken {
    hash: TokenHash,
    known: Arc<KnownToken>,
    /// How many more requests it could have sent at once; `None` without a limit.
    requests_left: Option<u32>,
    /// The file that has its current state.
    file: Arc<WatchedTokenFile>,
}

/// Why a request is refused.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum AccessDenial {
    /// It shows no token.
    #[error("no token; send the header Authorization: Bearer TOKEN. `ripplemem token add` makes a token")]
    Missing,
    /// No token in the file is this one.
    #[error("the token is not known here; `ripplemem token list` shows the tokens that are")]
    Unknown,
    /// It was revoked, or has expired.
    #[error("token {name}: {why}; ask for a new one")]
    Ended {
        /// The token's name.
        name: String,
        /// `revoked`, or `expired`.
        why: &'static str,
    },
    /// It lacks this right.
    #[error("token {name} lacks the right {right}", right = right.name())]
    Right {
        /// The token's name.
        name: String,
        /// The right.
        right: AccessRight,
    },
    /// It does not reach this bank.
    #[error("token {name} does not reach the bank {bank}")]
    Bank {
        /// The token's name.
        name: String,
        /// The bank.
        bank: Bank,
    },
    /// It does not reach every bank.
    #[error("token {name} does not reach every bank; name a bank that it reaches")]
    Everywhere {
        /// The token's name.
        name: String,
    },
    /// It sent too many requests.
    #[error("token {name} has used up its requests for this minute; wait {} s", retry_after.as_secs() + 1)]
    TooMany {
        /// The token's name.
        name: String,
        /// How long to wait.
        retry_after: Duration,
    },
}

impl AccessDenial {
    /// The name of the token that was shown, if it is known.
    #[must_use]
    pub fn name(&self) -> Option<&str> {
        match self {
            Self::Missing | Self::Unknown => None,
            Self::Ended { name, .. }
            | Self::Right { name, .. }
            | Self::Bank { name, .. }
            | Self::Everywhere { name }
            | Self::TooMany { name, .. } => Some(name),
        }
    }
}

impl TokenAuthenticator {
    /// Reads the file. `local` is one more token, which is not in the file and may do everything.
    ///
    /// # Errors
    /// [`AccessError::File`], also if the thread that checks the file cannot be started.
    pub fn open(path: &Path, local: &TokenSecret) -> Result<Self, AccessError> {
        let stamp = stamp(path);
        let known = RwLock::new(known_tokens(&TokenFile::read(path)?, &HashMap::new()));
        let look = Mutex::new(TokenFileCheck { stamp, problem: None, began: None });
        let file = Arc::new(WatchedTokenFile { path: path.to_owned(), known, look, changed: watch::Sender::new(()) });
        let (stop, stopped) = bounded::<()>(0);
        let watched = Arc::clone(&file);
        let look = move || {
            while stopped.recv_timeout(CHECK_INTERVAL) == Err(RecvTimeoutError::Timeout) {
                watched.check_file();
            }
        };
        std::thread::Builder::new().name("access-look".to_owned()).spawn(look).map_err(|e| AccessError::File {
            path: path.to_owned(),
            problem: format!("the thread that checks it cannot start: {e}; raise the system's limit on threads"),
        })?;
        Ok(Self { file, local: hash(local.reveal()), _stop: stop })
    }

    /// Whether there is no token that could be shown.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        sync::read(&self.file.known).values().all(|known| known.ended().is_some())
    }

    /// A problem with the file since the last call; each problem is returned once.
    pub fn take_problem(&self) -> Option<String> {
        self.file.take_problem(LONG_LOOK)
    }

    /// The caller that shows this token; the call counts as one request of the token's limit.
    ///
    /// # Errors
    /// [`AccessDenial`].
    pub fn caller(&self, token: Option<&str>) -> Result<Caller, AccessDenial> {
        let token = token.map(str::trim).filter(|token| !token.is_empty()).ok_or(AccessDenial::Missing)?;
        if token.len() > MAX_TOKEN_BYTES {
            return Err(AccessDenial::Unknown);
        }
        let hash = hash(token);
        if hash == self.local {
            return Ok(Caller::anybody());
        }
        let found = sync::read(&self.file.known).get(&hash).cloned();
        let known = found.ok_or(AccessDenial::Unknown)?;
        if let Some(why) = known.ended() {
            return Err(AccessDenial::Ended { name: known.grant.name.clone(), why });
        }
        let requests_left = known.count()?;
        let file = Arc::clone(&self.file);
        Ok(Caller { token: Some(PresentedToken { hash, known, requests_left, file }), asked: Mutex::default() })
    }
}

impl KnownToken {
    /// Why the token is refused now, if it is.
    fn ended(&self) -> Option<&'static str> {
        if self.grant.revoked.is_some() {
            Some("it was revoked")
        } else if self.expiry.has_passed() {
            Some("it has expired")
        } else {
            None
        }
    }

    /// Counts a request, and returns how many more may come at once; `None` if nothing limits them.
    fn count(&self) -> Result<Option<u32>, AccessDenial> {
        match self.limiter.as_ref().map(RateLimiter::check) {
            None => Ok(None),
            Some(Ok(state)) => Ok(Some(state.remaining_burst_capacity())),
            Some(Err(until)) => {
                let retry_after = until.wait_time_from(DefaultClock::default().now());
                Err(AccessDenial::TooMany { name: self.grant.name.clone(), retry_after })
            }
        }
    }
}

impl WatchedTokenFile {
    /// Reads the file again when it has changed.
    fn check_file(&self) {
        sync::lock(&self.look).began = Some(Instant::now());
        let stamp = stamp(&self.path);
        let is_new = stamp != sync::lock(&self.look).stamp;
        let read = is_new.then(|| TokenFile::read(&self.path));
        let mut look = sync::lock(&self.look);
        look.began = None;
        if let Some(read) = read {
            self.apply_file(read, stamp, &mut look);
        }
    }

    /// Takes over what a check has read.
    fn apply_file(&self, read: Result<TokenFile, AccessError>, stamp: Option<FileStamp>, look: &mut TokenFileCheck) {
        match read {
            Ok(file) => {
                look.stamp = stamp;
                let mut now = sync::write(&self.known);
                *now = known_tokens(&file, &now);
                drop(now);
                self.changed.send_replace(());
            }
            // It is read again at the next check.
            Err(error) => look.problem = Some(format!("{error}; the tokens that were read before stay valid")),
        }
    }

    /// The problem of the last check, or a notice that a check takes longer than `long`; each is returned once.
    fn take_problem(&self, long: Duration) -> Option<String> {
        let mut look = sync::lock(&self.look);
        let problem = look.problem.take();
        let is_long = look.began.is_some_and(|began| began.elapsed() > long);
        problem.or_else(|| {
            is_long.then(|| {
                look.began = None;
                format!(
                    "{}: the system has not returned its content for {} s; tokens that are made or revoked do not take \
                     effect until it does: check the disk, or start the service again",
                    self.path.display(),
                    long.as_secs()
                )
            })
        })
    }
}

impl Caller {
    /// The caller of a service without tokens: every right in every bank.
    #[must_use]
    pub fn anybody() -> Self {
        Self { token: None, asked: Mutex::default() }
    }

    /// The token's name, for the audit log; `None` if no tokens are required.
    #[must_use]
    pub fn name(&self) -> Option<&str> {
        self.token.as_ref().map(|shown| shown.known.grant.name.as_str())
    }

    /// What the token may do, as the file says now; `None` if no tokens are required.
    ///
    /// # Errors
    /// [`AccessDenial::Ended`] or [`AccessDenial::Unknown`] if the token is no longer valid.
    pub fn grant(&self) -> Result<Option<TokenGrant>, AccessDenial> {
        self.token.as_ref().map(|shown| shown.now().map(|known| known.grant.clone())).transpose()
    }

    /// How many more requests the token could have sent at once when it was shown; `None` if nothing limits it.
    #[must_use]
    pub fn requests_left(&self) -> Option<u32> {
        self.token.as_ref()?.requests_left
    }

    /// Counts another message of the same request, as the request was counted.
    ///
    /// # Errors
    /// [`AccessDenial::TooMany`].
    pub fn count_again(&self) -> Result<(), AccessDenial> {
        let Some(PresentedToken { known, .. }) = &self.token else { return Ok(()) };
        known.count().map(drop)
    }

    /// The check that the audit log notes: a refusal before all others, then by the right, that of a deletion first and
    /// that of a read last; of equal ones, the latest.
    #[must_use]
    pub fn asked(&self) -> CheckedRight {
        sync::lock(&self.asked).clone()
    }

    /// Whether the token gives a right.
    ///
    /// # Errors
    /// [`AccessDenial::Right`]; [`AccessDenial::Ended`] or [`AccessDenial::Unknown`] if the token is no longer valid.
    pub fn may(&self, right: AccessRight) -> Result<(), AccessDenial> {
        self.note_check(right, None, self.has(right).map(drop))
    }

    /// Whether the token gives a right in a bank.
    ///
    /// # Errors
    /// [`AccessDenial::Right`], [`AccessDenial::Bank`]; [`AccessDenial::Ended`] or [`AccessDenial::Unknown`] if the
    /// token is no longer valid.
    pub fn may_in(&self, right: AccessRight, bank: &Bank) -> Result<(), AccessDenial> {
        self.note_check(right, Some(bank), self.still_may_in(right, bank))
    }

    /// Whether the token gives a right in every bank.
    ///
    /// # Errors
    /// [`AccessDenial::Right`], [`AccessDenial::Everywhere`]; [`AccessDenial::Ended`] or [`AccessDenial::Unknown`] if
    /// the token is no longer valid.
    pub fn may_everywhere(&self, right: AccessRight) -> Result<(), AccessDenial> {
        self.note_check(right, None, self.everywhere(right))
    }

    /// Whether the token gives a right in every bank, for callers that refuse nothing if it does not.
    #[must_use]
    pub fn sees_all(&self, right: AccessRight) -> bool {
        self.everywhere(right).is_ok()
    }

    /// The token as the file has it now, if it gives a right; `None` if no tokens are required. A request may have
    /// waited for a long time since it showed its token, so nothing is ever decided by what the file said then.
    fn has(&self, right: AccessRight) -> Result<Option<Arc<KnownToken>>, AccessDenial> {
        let Some(shown) = &self.token else { return Ok(None) };
        let known = shown.now()?;
        if known.grant.rights.contains(&right) {
            Ok(Some(known))
        } else {
            Err(AccessDenial::Right { name: known.grant.name.clone(), right })
        }
    }

    fn everywhere(&self, right: AccessRight) -> Result<(), AccessDenial> {
        match self.has(right)? {
            Some(known) if !known.grant.banks.contains(&BankPrefix::Every) => {
                Err(AccessDenial::Everywhere { name: known.grant.name.clone() })
            }
            _ => Ok(()),
        }
    }

    /// Notes which right was checked, and whether the token gives it.
    fn note_check(
        &self,
        right: AccessRight,
        bank: Option<&Bank>,
        given: Result<(), AccessDenial>,
    ) -> Result<(), AccessDenial> {
        let now = CheckedRight { right: Some(right), bank: bank.cloned(), is_denied: given.is_err() };
        let mut noted = sync::lock(&self.asked);
        // In a message of several banks, or a batch, a refusal or a deletion is not replaced by the check of a read.
        if now.weight() >= noted.weight() {
            *noted = now;
        }
        given
    }

    /// Whether the token reaches a bank; lists leave out all others.
    #[must_use]
    pub fn reaches(&self, bank: &Bank) -> bool {
        self.token.as_ref().is_none_or(|shown| shown.now().is_ok_and(|known| known.grant.covers(bank)))
    }

    /// As [`Self::may_in`], without a note for the audit log.
    ///
    /// # Errors
    /// As [`Self::may_in`].
    pub fn still_may_in(&self, right: AccessRight, bank: &Bank) -> Result<(), AccessDenial> {
        match self.has(right)? {
            Some(known) if !known.grant.covers(bank) => {
                Err(AccessDenial::Bank { name: known.grant.name.clone(), bank: bank.clone() })
            }
            _ => Ok(()),
        }
    }

    /// Whether the token is valid now, however long ago it was shown.
    #[must_use]
    pub fn is_still_valid(&self) -> bool {
        self.token.as_ref().is_none_or(|shown| shown.now().is_ok())
    }

    /// Signals when the result of [`Self::still_may_in`] may have changed; `None` if it never changes.
    #[must_use]
    pub fn changes(&self) -> Option<watch::Receiver<()>> {
        self.token.as_ref().map(|shown| shown.file.changed.subscribe())
    }

    /// For how long the token is still valid, if it expires, as the file says now.
    #[must_use]
    pub fn expires_in(&self) -> Option<Duration> {
        let Ok(known) = self.token.as_ref()?.now() else { return Some(Duration::ZERO) };
        known.expiry.left()
    }
}

impl PresentedToken {
    /// The token as it is now.
    fn now(&self) -> Result<Arc<KnownToken>, AccessDenial> {
        let known = sync::read(&self.file.known).get(&self.hash).cloned().ok_or(AccessDenial::Unknown)?;
        match known.ended() {
            Some(why) => Err(AccessDenial::Ended { name: known.grant.name.clone(), why }),
            None => Ok(known),
        }
    }
}

impl TokenGrant {
    /// Whether one of its prefixes covers a bank.
    fn covers(&self, bank: &Bank) -> bool {
        self.banks.iter().any(|prefix| prefix.covers(bank))
    }
}

/// The tokens of a file. A token whose line has not changed continues to count its requests, and its time.
fn known_tokens(file: &TokenFile, before: &HashMap<TokenHash, Arc<KnownToken>>) -> HashMap<TokenHash, Arc<KnownToken>> {
    let mut known = HashMap::with_capacity(file.grants().len());
    // A clock that is behind a time in the file was set back.
    let noted = file.grants().iter().flat_map(|grant| grant.revoked.into_iter().chain([grant.created])).max();
    let (now, here) = (noted.map_or_else(Timestamp::now, |noted| noted.max(Timestamp::now())), Instant::now());
    for grant in file.grants() {
        let Some(hash) = from_hex(&grant.sha256) else { continue };
        let same = before.get(&hash).filter(|known| known.grant == *grant).cloned();
        let fresh = || {
            let limiter = grant.requests_per_minute.map(|most| {
                RateLimiter::direct(Quota::per_minute(most)).with_middleware::<StateInformationMiddleware>()
            });
            let expiry = TokenExpiry::of(grant.expires, now, here);
            Arc::new(KnownToken { grant: grant.clone(), expiry, limiter })
        };
        known.insert(hash, same.unwrap_or_else(fresh));
    }
    known
}

/// Shows whether a file was replaced, written or given other permissions. The time of the last write and the length
/// are not enough: a writer of the file can set both.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct FileStamp {
    modified: SystemTime,
    bytes: u64,
    /// The file's number, and when the system last changed anything about it, which no one can set.
    #[cfg(unix)]
    changed: (u64, i64, i64),
}

fn stamp(path: &Path) -> Option<FileStamp> {
    let metadata = fs::metadata(path).ok()?;
    #[cfg(unix)]
    let changed = {
        use std::os::unix::fs::MetadataExt as _;
        (metadata.ino(), metadata.ctime(), metadata.ctime_nsec())
    };
    Some(FileStamp {
        modified: metadata.modified().ok()?,
        bytes: metadata.len(),
        #[cfg(unix)]
        changed,
    })
}

#[cfg(test)]
mod tests {
    use super::{
        super::token_file::{NewGrant, grant},
        *,
    };

    fn bank(name: &str) -> Bank {
        Bank::parse(name).unwrap()
    }

    fn open(path: &Path) -> TokenAuthenticator {
        TokenAuthenticator::open(path, &TokenSecret::generate().unwrap()).unwrap()
    }

    /// Checks the file, as the thread does a second later.
    fn later(gate: &TokenAuthenticator) {
        gate.file.check_file();
    }

    #[test]
    fn a_token_gives_what_its_line_names_and_nothing_else() {
        let home = tempfile::tempdir().unwrap();
        let path = home.path().join("tokens.json");
        let mut file = TokenFile::read(&path).unwrap();
        let reader = file.add(grant("reader", "acme", &[AccessRight::Read])).unwrap();
        let writer = file.add(grant("writer", "*", &[AccessRight::Write, AccessRight::Forget])).unwrap();
        let nothing = NewGrant { banks: Vec::new(), ..grant("nothing", "*", &[]) };
        let nothing = file.add(nothing).unwrap();
        let gate = open(&path);
        let caller = |secret: &TokenSecret| gate.caller(Some(secret.reveal())).unwrap();
        assert_eq!(caller(&reader).may_in(AccessRight::Read, &bank("acme/support")), Ok(()));
        let other = caller(&reader).may_in(AccessRight::Read, &bank("acme2"));
        assert_eq!(other, Err(AccessDenial::Bank { name: "reader".to_owned(), bank: bank("acme2") }));
        for right in [AccessRight::Write, AccessRight::Forget, AccessRight::Admin] {
            let denied = caller(&reader).may_in(right, &bank("acme"));
            assert_eq!(denied, Err(AccessDenial::Right { name: "reader".to_owned(), right }));
        }
        assert_eq!(caller(&writer).may_in(AccessRight::Write, &bank("any")), Ok(()));
        assert!(caller(&writer).may_in(AccessRight::Read, &bank("any")).is_err(), "writing does not include reading");
        for right in AccessRight::ALL {
            assert!(caller(&nothing).may(right).is_err());
        }
        let caller = caller(&reader);
        drop(caller.may_in(AccessRight::Forget, &bank("acme2")));
        let CheckedRight { right, bank: of, is_denied } = caller.asked();
        let asked = (right, of, is_denied);
        assert_eq!(
            asked,
            (Some(AccessRight::Forget), Some(bank("acme2")), true),
            "the audit log names what was refused"
        );
        assert_eq!((caller.name(), Caller::anybody().name()), (Some("reader"), None));
        assert_eq!(Caller::anybody().may_in(AccessRight::Admin, &bank("any")), Ok(()));
        assert_eq!(gate.caller(None).err(), Some(AccessDenial::Missing));
        for wrong in ["x", &format!("{}x", reader.reveal()), &"x".repeat(100_000)] {
            assert_eq!(gate.caller(Some(wrong)).err(), Some(AccessDenial::Unknown));
        }
    }

    #[test]
    fn the_token_of_this_machines_commands_may_do_everything() {
        let home = tempfile::tempdir().unwrap();
        let local = TokenSecret::generate().unwrap();
        let gate = TokenAuthenticator::open(&home.path().join("tokens.json"), &local).unwrap();
        assert_eq!(gate.caller(Some(local.reveal())).unwrap().may_everywhere(AccessRight::Admin), Ok(()));
        assert_eq!(gate.caller(Some(TokenSecret::generate().unwrap().reveal())).err(), Some(AccessDenial::Unknown));
    }

    #[test]
    fn a_caller_who_stays_loses_what_is_taken_from_the_token() {
        let home = tempfile::tempdir().unwrap();
        let path = home.path().join("tokens.json");
        let mut file = TokenFile::read(&path).unwrap();
        let secret = file.add(grant("agent", "acme", &[AccessRight::Read])).unwrap();
        let gate = open(&path);
        let caller = gate.caller(Some(secret.reveal())).unwrap();
        let changed = caller.changes().unwrap();
        assert_eq!(caller.still_may_in(AccessRight::Read, &bank("acme/a")), Ok(()));
        assert!(caller.still_may_in(AccessRight::Read, &bank("other")).is_err());
        assert!(caller.still_may_in(AccessRight::Write, &bank("acme/a")).is_err());
        file.revoke("agent").unwrap();
        later(&gate);
        assert!(changed.has_changed().unwrap(), "whoever waits for a change hears of it");
        assert!(matches!(caller.still_may_in(AccessRight::Read, &bank("acme/a")), Err(AccessDenial::Ended { .. })));
        fs::remove_file(&path).unwrap();
        later(&gate);
        assert_eq!(caller.still_may_in(AccessRight::Read, &bank("acme/a")), Err(AccessDenial::Unknown));
        assert_eq!(Caller::anybody().still_may_in(AccessRight::Admin, &bank("any")), Ok(()));
    }

    /// A question may wait for ten minutes, and a body for twenty seconds, before something is decided.
    #[test]
    fn nothing_is_decided_by_what_the_file_said_when_the_token_was_shown() {
        let home = tempfile::tempdir().unwrap();
        let path = home.path().join("tokens.json");
        let mut file = TokenFile::read(&path).unwrap();
        let secret = file.add(grant("agent", "*", &AccessRight::ALL)).unwrap();
        let gate = open(&path);
        let caller = gate.caller(Some(secret.reveal())).unwrap();
        let acme = bank("acme");
        let decisions = || {
            let all = [
                caller.may(AccessRight::Read),
                caller.may_in(AccessRight::Write, &acme),
                caller.may_everywhere(AccessRight::Admin),
                caller.still_may_in(AccessRight::Read, &acme),
            ];
            (all, caller.sees_all(AccessRight::Read), caller.reaches(&acme))
        };
        assert_eq!(decisions(), ([const { Ok(()) }; 4], true, true));
        file.revoke("agent").unwrap();
        later(&gate);
        let ended = || Err(AccessDenial::Ended { name: "agent".to_owned(), why: "it was revoked" });
        assert_eq!(decisions(), ([ended(), ended(), ended(), ended()], false, false));
        assert!(caller.asked().is_denied, "the audit log says so");
    }

    #[cfg(unix)]
    #[test]
    fn a_change_counts_although_size_and_time_are_as_before() {
        use std::os::unix::fs::PermissionsExt as _;
        let home = tempfile::tempdir().unwrap();
        let path = home.path().join("tokens.json");
        let secret = TokenFile::read(&path).unwrap().add(grant("agent", "*", &[AccessRight::Read])).unwrap();
        let gate = open(&path);
        let before = fs::metadata(&path).unwrap().modified().unwrap();
        let text = fs::read_to_string(&path).unwrap();
        fs::write(&path, text.replace("\"read\"", "      ")).unwrap();
        fs::File::options().write(true).open(&path).unwrap().set_modified(before).unwrap();
        later(&gate);
        let caller = gate.caller(Some(secret.reveal())).unwrap();
        assert!(
            matches!(caller.may(AccessRight::Read), Err(AccessDenial::Right { .. })),
            "{:?}",
            caller.may(AccessRight::Read)
        );
        fs::set_permissions(&path, fs::Permissions::from_mode(0o666)).unwrap();
        later(&gate);
        assert!(gate.take_problem().is_some_and(|problem| problem.contains("chmod 600")));
    }

    #[test]
    fn a_look_that_takes_long_is_told_once() {
        let home = tempfile::tempdir().unwrap();
        let path = home.path().join("tokens.json");
        let look = TokenFileCheck { stamp: None, problem: None, began: None };
        let known = RwLock::default();
        let file = WatchedTokenFile { path, known, look: Mutex::new(look), changed: watch::Sender::new(()) };
        assert_eq!(file.take_problem(Duration::ZERO), None);
        sync::lock(&file.look).began = Some(Instant::now());
        assert_eq!(file.take_problem(Duration::MAX), None);
        let told = file.take_problem(Duration::ZERO).unwrap();
        assert!(told.contains("tokens.json") && told.contains("check the disk"), "{told}");
        assert_eq!(file.take_problem(Duration::ZERO), None);
    }

    #[test]
    fn a_token_that_is_revoked_or_has_expired_is_refused_and_a_new_one_is_taken() {
        let home = tempfile::tempdir().unwrap();
        let path = home.path().join("tokens.json");
        let mut file = TokenFile::read(&path).unwrap();
        let gate = open(&path);
        assert!(gate.is_empty());
        let secret = file.add(grant("agent", "*", &[AccessRight::Read])).unwrap();
        later(&gate);
        assert!(gate.caller(Some(secret.reveal())).is_ok() && !gate.is_empty());
        file.revoke("agent").unwrap();
        later(&gate);
        let denied = gate.caller(Some(secret.reveal())).err().unwrap();
        assert!(denied.to_string().contains("revoked"), "{denied}");
        let expires = Some(Timestamp::UNIX_EPOCH);
        let old = file.add(NewGrant { expires, ..grant("old", "*", &[AccessRight::Read]) }).unwrap();
        later(&gate);
        let denied = gate.caller(Some(old.reveal())).err().unwrap();
        assert!(denied.to_string().contains("expired"), "{denied}");
        assert!(gate.is_empty());
    }

    #[test]
    fn a_token_lasts_as_long_as_the_file_says_now_and_not_as_when_it_was_shown() {
        let home = tempfile::tempdir().unwrap();
        let path = home.path().join("tokens.json");
        let in_seconds = |seconds| Timestamp::now() + Duration::from_secs(seconds);
        let new = NewGrant { expires: Some(in_seconds(600)), ..grant("agent", "*", &[AccessRight::Read]) };
        let mut file = TokenFile::read(&path).unwrap();
        let secret = file.add(new).unwrap();
        let gate = open(&path);
        let caller = gate.caller(Some(secret.reveal())).ok().unwrap();
        assert!(caller.expires_in().is_some_and(|left| left <= Duration::from_secs(600)));
        let before = fs::read_to_string(&path).unwrap();
        let shown = file.grants()[0].expires.unwrap().to_string();
        fs::write(&path, before.replace(&shown, &in_seconds(100_000).to_string())).unwrap();
        later(&gate);
        assert!(caller.expires_in().is_some_and(|left| left > Duration::from_secs(90_000)));
        file.revoke("agent").unwrap();
        later(&gate);
        assert_eq!(caller.expires_in(), Some(Duration::ZERO));
    }

    #[test]
    fn a_file_that_cannot_be_read_changes_nothing_and_one_that_is_gone_ends_access() {
        let home = tempfile::tempdir().unwrap();
        let path = home.path().join("tokens.json");
        let secret = TokenFile::read(&path).unwrap().add(grant("agent", "*", &[AccessRight::Read])).unwrap();
        let gate = open(&path);
        fs::write(&path, "{ not json").unwrap();
        later(&gate);
        assert!(gate.caller(Some(secret.reveal())).is_ok());
        let problem = gate.take_problem().expect("it is told");
        assert!(problem.contains("tokens.json") && problem.contains("stay valid"), "{problem}");
        assert_eq!(gate.take_problem(), None);
        fs::remove_file(&path).unwrap();
        later(&gate);
        assert_eq!(gate.caller(Some(secret.reveal())).err(), Some(AccessDenial::Unknown));
    }

    #[test]
    fn a_limit_counts_the_requests_of_its_token_alone_and_survives_another_line() {
        let home = tempfile::tempdir().unwrap();
        let path = home.path().join("tokens.json");
        let mut file = TokenFile::read(&path).unwrap();
        let limit =
            |name| NewGrant { requests_per_minute: 2.try_into().ok(), ..grant(name, "*", &[AccessRight::Read]) };
        let (one, other) = (file.add(limit("one")).unwrap(), file.add(limit("other")).unwrap());
        let gate = open(&path);
        for left in [1, 0] {
            assert_eq!(gate.caller(Some(one.reveal())).ok().map(|caller| caller.requests_left()), Some(Some(left)));
        }
        file.add(grant("third", "*", &[])).unwrap();
        later(&gate);
        let denied = gate.caller(Some(one.reveal())).err();
        assert!(
            matches!(&denied, Some(AccessDenial::TooMany { retry_after, .. }) if *retry_after <= Duration::from_secs(30)),
            "{denied:?}"
        );
        assert!(gate.caller(Some(other.reveal())).is_ok());
    }
}
