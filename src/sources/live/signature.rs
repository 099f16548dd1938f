//! Checks that a request really comes from its platform.
//!
//! In: a secret, a request's headers and its unchanged body. Out: nothing, or why the request is refused. Compares in
//! constant time. Never reads a clock: the caller passes the time.

use ring::hmac;

/// A request that was sent longer ago than this is treated as a replay.
const REPLAY_WINDOW_SECONDS: i64 = 300;

/// Returns a header of the request, by its name in lower case.
pub(super) type HeaderLookup<'a> = dyn Fn(&str) -> Option<String> + 'a;

/// Checks Slack's signature: HMAC-SHA256 of `v0:TIMESTAMP:BODY`.
///
/// # Errors
/// What is missing or wrong.
pub(super) fn check_slack(
    secret: &str,
    header: &HeaderLookup<'_>,
    body: &[u8],
    now_seconds: i64,
) -> Result<(), String> {
    let parts = SignatureScheme {
        time: "x-slack-request-timestamp",
        signature: "x-slack-signature",
        version: "v0",
        joint: ":",
    };
    parts.check(secret, header, body, now_seconds)
}

/// Checks the signature of a signed webhook: HMAC-SHA256 of `TIMESTAMP.BODY`.
///
/// # Errors
/// What is missing or wrong.
pub(super) fn check_signed(
    secret: &str,
    header: &HeaderLookup<'_>,
    body: &[u8],
    now_seconds: i64,
) -> Result<(), String> {
    let parts = SignatureScheme {
        time: "x-ripplemem-timestamp",
        signature: "x-ripplemem-signature",
        version: "v1",
        joint: ".",
    };
    parts.check(secret, header, body, now_seconds)
}

/// Checks that a header holds the secret itself, as Telegram sends it.
///
/// # Errors
/// What is missing or wrong.
pub(super) fn check_token(secret: &str, name: &str, header: &HeaderLookup<'_>) -> Result<(), String> {
    let given = header(name).ok_or_else(|| format!("the header {name} is missing"))?;
    // Two signatures made with the same key are compared, so that the time does not depend on where the texts differ.
    let key = hmac::Key::new(hmac::HMAC_SHA256, secret.as_bytes());
    let expected = hmac::sign(&key, secret.as_bytes());
    hmac::verify(&key, given.as_bytes(), expected.as_ref()).map_err(|_| format!("the header {name} is wrong"))
}

struct SignatureScheme {
    time: &'static str,
    signature: &'static str,
    /// The prefix of a signature's digits, and in Slack's case also of the signed text.
    version: &'static str,
    joint: &'static str,
}

impl SignatureScheme {
    fn check(&self, secret: &str, header: &HeaderLookup<'_>, body: &[u8], now_seconds: i64) -> Result<(), String> {
        let Self { time, signature, version, joint } = self;
        let stated = header(time).ok_or_else(|| format!("the header {time} is missing"))?;
        let sent: i64 = stated.parse().map_err(|_| format!("the header {time} is not in seconds since 1970"))?;
        if now_seconds.abs_diff(sent) > REPLAY_WINDOW_SECONDS.unsigned_abs() {
            return Err(format!("the header {time} is more than {REPLAY_WINDOW_SECONDS} s from now"));
        }
        let given = header(signature).ok_or_else(|| format!("the header {signature} is missing"))?;
        let wrong = || format!("the header {signature} is wrong");
        let digest = given.strip_prefix(version).and_then(|rest| rest.strip_prefix('=')).and_then(from_hex);
        let digest = digest.ok_or_else(wrong)?;
        let key = hmac::Key::new(hmac::HMAC_SHA256, secret.as_bytes());
        let before = if *joint == ":" { format!("{version}:{stated}:") } else { format!("{stated}{joint}") };
        let signed = [before.as_bytes(), body].concat();
        hmac::verify(&key, &signed, &digest).map_err(|_| wrong())
    }
}

fn from_hex(text: &str) -> Option<Vec<u8>> {
    let digit = |byte: &u8| char::from(*byte).to_digit(16).and_then(|digit| u8::try_from(digit).ok());
    let pair = |pair: &[u8]| match pair {
        [high, low] => Some(digit(high)? << 4 | digit(low)?),
        _ => None,
    };
    text.as_bytes().chunks(2).map(pair).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    type SignatureCheck = fn(&str, &HeaderLookup<'_>, &[u8], i64) -> Result<(), String>;

    fn hex(bytes: &[u8]) -> String {
        bytes.iter().map(|byte| format!("{byte:02x}")).collect()
    }

    /// The outcome of a request with these two headers.
    fn outcome(
        check: SignatureCheck,
        names: [&str; 2],
        values: [Option<&str>; 2],
        body: &[u8],
        now: i64,
    ) -> Result<(), String> {
        let header = |name: &str| {
            let at = names.iter().position(|known| *known == name)?;
            values[at].map(str::to_owned)
        };
        check("secret", &header, body, now)
    }

    #[test]
    fn slacks_example_is_accepted() {
        // The example of https://docs.slack.dev/authentication/verifying-requests-from-slack
        let body = b"token=xyzz0WbapA4vBCDEFasx0q6G&team_id=T1DC2JH3J&team_domain=testteamnow&channel_id=G8PSS9T3V&channel_name=foobar&user_id=U2CERLKJA&user_name=roadrunner&command=%2Fwebhook-collect&text=&response_url=https%3A%2F%2Fhooks.slack.com%2Fcommands%2FT1DC2JH3J%2F397700885554%2F96rGlfmibIGlgcZRskXaIFfN&trigger_id=398738663015.47445629121.803a0bc887a14d10d2c447fce8b6703c";
        let header = |name: &str| match name {
            "x-slack-request-timestamp" => Some("1531420618".to_owned()),
            "x-slack-signature" => {
                Some("v0=a2114d57b48eac39b9ad189dd8316235a7b4a8d21a10bd27519666489c69b503".to_owned())
            }
            _ => None,
        };
        assert_eq!(check_slack("8f742231b10e8888abcd99yyyzzz85a5", &header, body, 1_531_420_700), Ok(()));
    }

    #[test]
    fn only_the_right_signature_of_these_five_minutes_is_accepted() {
        let cases: [(SignatureCheck, [&str; 2], &str, &str); 2] = [
            (check_slack, ["x-slack-request-timestamp", "x-slack-signature"], "v0:1000:", "v0="),
            (check_signed, ["x-ripplemem-timestamp", "x-ripplemem-signature"], "1000.", "v1="),
        ];
        for (check, names, before, version) in cases {
            let key = hmac::Key::new(hmac::HMAC_SHA256, b"secret");
            let signed = hmac::sign(&key, format!("{before}body").as_bytes());
            let right = format!("{version}{}", hex(signed.as_ref()));
            let outcome = |values, body: &[u8], now| outcome(check, names, values, body, now);
            let good = [Some("1000"), Some(right.as_str())];
            for now in [700, 1_000, 1_300] {
                assert_eq!(outcome(good, b"body", now), Ok(()));
            }
            for (values, body, now, problem) in [
                (good, &b"body"[..], 1_301, "more than 300 s from now"),
                (good, b"body", 699, "more than 300 s from now"),
                (good, b"Body", 1_000, "is wrong"),
                ([Some("1001"), Some(right.as_str())], b"body", 1_001, "is wrong"),
                ([Some("1000"), Some("v9=00")], b"body", 1_000, "is wrong"),
                ([Some("1000"), Some("v0=0")], b"body", 1_000, "is wrong"),
                ([Some("1000"), Some("")], b"body", 1_000, "is wrong"),
                ([Some("1000"), None], b"body", 1_000, "is missing"),
                ([Some("soon"), Some(right.as_str())], b"body", 1_000, "is not in seconds"),
                ([None, Some(right.as_str())], b"body", 1_000, "is missing"),
            ] {
                let found = outcome(values, body, now).unwrap_err();
                assert!(found.contains(problem), "{found}");
            }
        }
    }

    #[test]
    fn only_the_right_token_is_accepted() {
        let check = |given: Option<&str>| check_token("secret", "x-token", &|_: &str| given.map(str::to_owned));
        assert_eq!(check(Some("secret")), Ok(()));
        for wrong in [Some("Secret"), Some(""), None] {
            assert!(check(wrong).is_err(), "{wrong:?}");
        }
    }
}
