//! Removes what must not be stored from texts, before anything is stored.
//!
//! In: patterns, and texts. Out: the texts with every match of a pattern replaced, and the number of replacements by
//! kind. The set `keys` finds keys, tokens and passwords by their usual forms (`secret_rules`); the set `secrets` finds
//! these and e-mail addresses, card numbers with a correct check digit, and phone numbers. They can miss a secret that
//! has none of these forms. `none` stands for no pattern.

use std::{borrow::Cow, collections::BTreeMap, ops::Range};

use regex::Regex;

use super::secret_rules::SECRET_RULES;
use crate::SourceError;

/// The names of the built-in sets.
const SECRETS: &str = "secrets";
const KEYS: &str = "keys";
/// The word for no pattern, where a source has some of its own.
const NONE: &str = "none";
/// What stands for a key.
const KEY_MARK: &str = "[key]";

const ADDRESSES: &str = r"(?i)\b[\p{L}0-9._%+-]+@[\p{L}0-9-]+(?:\.[\p{L}0-9-]+)*\.\p{L}{2,}\b";
const CARDS: &str = r"\b[2-6](?:[ -]?[0-9]){12,18}\b";
const PHONES: &str = r"(?x)
    (?:\+|\b00)[1-9][0-9]{0,2}(?:[\ ./-]{0,2}\(?[0-9]{1,5}\)?){2,6}\b
    | (?:\(\d{3}\)\ ?|\b\d{3}[.\ -])\d{3}[.\ -]\d{4}\b
    | \b0\d{2,4}[\ /-]\d{3,8}(?:[\ -]\d{2,5}){0,3}\b
";

/// The patterns of a source.
pub(super) struct Redaction {
    /// Whether keys are found.
    finds_keys: bool,
    patterns: Vec<RedactionPattern>,
}

struct RedactionPattern {
    regex: Regex,
    mark: &'static str,
    /// A further condition that a match must meet.
    also: fn(&str) -> bool,
}

/// A regular expression, the replacement of a match, and a check whether a match counts.
type RedactionRule<'p> = (&'p str, &'static str, fn(&str) -> bool);

impl Redaction {
    /// Reads the patterns: `keys`, `secrets`, `none`, or regular expressions.
    ///
    /// # Errors
    /// [`SourceError::Settings`] when one is not a regular expression, or matches an empty text.
    pub(super) fn new(patterns: &[String]) -> Result<Self, SourceError> {
        let invalid = |problem| SourceError::Settings { key: "redact", problem };
        let mut all = Self { finds_keys: false, patterns: Vec::new() };
        for pattern in patterns {
            let set: &[RedactionRule<'_>] = match pattern.as_str() {
                NONE => &[],
                KEYS => {
                    all.finds_keys = true;
                    &[]
                }
                SECRETS => {
                    all.finds_keys = true;
                    &[(ADDRESSES, "[address]", any), (CARDS, "[card]", is_card), (PHONES, "[phone]", is_phone)]
                }
                own => &[(own, "[redacted]", any)],
            };
            for (regex, mark, also) in set {
                let regex = Regex::new(regex).map_err(|e| {
                    let sets = format!("{KEYS:?}, {SECRETS:?}, {NONE:?}");
                    invalid(format!("{pattern:?} is neither {sets} nor a regular expression: {e}"))
                })?;
                if regex.is_match("") {
                    return Err(invalid(format!(
                        "{pattern:?} matches an empty text; write one that needs a character"
                    )));
                }
                all.patterns.push(RedactionPattern { regex, mark, also: *also });
            }
        }
        if all.finds_keys && SECRET_RULES.rules.is_empty() {
            return Err(invalid(format!("the rules of {KEYS:?} cannot be read; use another build")));
        }
        Ok(all)
    }

    /// A text with every match replaced; replacements are counted by kind: of keys, what they are for; of everything
    /// else, the mark that stands there now.
    pub(super) fn apply<'a>(&self, text: &'a str, counts: &mut BTreeMap<&'static str, u64>) -> Cow<'a, str> {
        let mut text = Cow::Borrowed(text);
        if self.finds_keys {
            let all = &*SECRET_RULES;
            for rule in all.rules.iter() {
                if rule.may_match(&text) {
                    let count = mask(&mut text, KEY_MARK, |text, from| all.next(rule, text, from));
                    tell(counts, rule.kind.as_str(), count);
                }
            }
        }
        for RedactionPattern { regex, mark: sign, also } in &self.patterns {
            let next = |text: &str, from| regex.find_at(text, from).map(|found| (found.range(), also(found.as_str())));
            let count = mask(&mut text, sign, next);
            tell(counts, sign, count);
        }
        text
    }
}

fn tell(counts: &mut BTreeMap<&'static str, u64>, kind: &'static str, count: u64) {
    if count > 0 {
        *counts.entry(kind).or_default() += count;
    }
}

/// Puts a mark in the place of what `next` finds in a text behind a place, where it says that it counts. Returns how
/// often.
fn mask(text: &mut Cow<'_, str>, mark: &str, next: impl Fn(&str, usize) -> Option<(Range<usize>, bool)>) -> u64 {
    let (mut masked, mut copied, mut from, mut count) = (String::new(), 0, 0, 0);
    while let Some((found, is_meant)) = next(text, from) {
        if is_meant {
            masked.push_str(text.get(copied..found.start).unwrap_or_default());
            masked.push_str(mark);
            copied = found.end;
            count += 1;
        }
        // A pattern of the user may match nothing at a place.
        let passed = text.get(found.end..).and_then(|rest| rest.chars().next()).filter(|_| found.is_empty());
        if found.is_empty() && passed.is_none() {
            break;
        }
        from = found.end + passed.map_or(0, char::len_utf8);
    }
    if count > 0 {
        masked.push_str(text.get(copied..).unwrap_or_default());
        *text = Cow::Owned(masked);
    }
    count
}

fn any(_: &str) -> bool {
    true
}

/// Whether digits end in the check digit that cards have (Luhn).
fn is_card(found: &str) -> bool {
    let digits: Vec<u32> = found.chars().filter_map(|c| c.to_digit(10)).collect();
    let sum: u32 = digits
        .iter()
        .rev()
        .enumerate()
        .map(|(at, digit)| match (at % 2, digit * 2) {
            (0, _) => *digit,
            (_, double) => double / 10 + double % 10,
        })
        .sum();
    (13..=19).contains(&digits.len()) && sum.is_multiple_of(10)
}

/// Whether there are as many digits as in a phone number, and the match is not a date such as 2024-05-01.
fn is_phone(found: &str) -> bool {
    (8..=15).contains(&found.chars().filter(char::is_ascii_digit).count())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A text of `length` letters and digits, as keys have them.
    fn drawn(length: usize, letters: &str) -> String {
        let letters: Vec<char> = letters.chars().collect();
        (0..length).map(|at| letters[(at * 7 + at / 5 + 3) % letters.len()]).collect()
    }

    const ALL: &str = "q7Xw2Lm9Rt4Bz8Kc1Vn6Hs3Jd5Fg0PyTaEuOiWvYkDrCxZbMeGhNfQlS";
    const UPPER: &str = "Q7XW2LM4RTBZ3KCVN6HSJDFGPYAEUOI5";
    const HEX: &str = "0a1b9c2d8e3f7465";

    /// Each is shaped as a service issues it, and invented; none stands whole in this file.
    #[test]
    fn keys_of_services_are_found_and_counted_by_what_they_are_for() {
        let a = |length| drawn(length, ALL);
        let body = format!("{}\n{}", a(64), a(40));
        let cases = [
            ("AWS access key", format!("AKIA{}", drawn(16, UPPER))),
            ("AWS access key", format!("ASIA{}", drawn(16, UPPER))),
            ("AWS secret key", format!("aws_secret_access_key = >{}<", a(40))),
            ("GitHub token", format!("ghp_{}", a(36))),
            ("GitHub token", format!("gho_{}", a(36))),
            ("GitHub token", format!("ghs_{}", a(36))),
            ("GitHub token", format!("github_pat_{}_{}", a(22), a(59))),
            ("GitLab token", format!("glpat-{}", a(20))),
            ("Slack token", format!("xoxb-{}-{}-{}", drawn(12, "1928374650"), drawn(13, "1928374650"), a(24))),
            ("Slack token", format!("xoxp-{}-{}", drawn(12, "1928374650"), a(32))),
            ("Slack token", format!("xapp-1-A0{}-{}-{}", a(9), drawn(13, "1928374650"), drawn(64, HEX))),
            ("Slack webhook", format!("https://hooks.slack.com/services/T0{}/B0{}/{}", a(9), a(9), a(24))),
            ("Discord webhook", format!("https://discord.com/api/webhooks/{}/{}", drawn(18, "1928374650"), a(68))),
            ("Anthropic key", format!("sk-ant-api03-{}-{}AA", a(60), a(30))),
            ("OpenRouter key", format!("sk-or-v1-{}", drawn(64, HEX))),
            ("OpenAI key", format!("sk-{}", a(48))),
            ("OpenAI key", format!("sk-proj-{}_{}-{}", a(40), a(30), a(50))),
            ("OpenAI key", format!("sk-svcacct-{}", a(60))),
            ("Google key", format!("AIza{}", a(35))),
            ("Google key", format!("ya29.{}", a(80))),
            ("Google key", format!("GOCSPX-{}", a(28))),
            ("Stripe key", format!("sk_live_{}", a(24))),
            ("Stripe key", format!("rk_test_{}", a(24))),
            ("Stripe key", format!("whsec_{}", a(32))),
            ("npm token", format!("npm_{}", a(36))),
            ("PyPI token", format!("pypi-AgEIcHlwaS5vcmc{}", a(70))),
            ("Hugging Face token", format!("hf_{}", a(34))),
            ("SendGrid key", format!("SG.{}.{}", a(22), a(43))),
            ("Mailgun key", format!("key-{}", drawn(32, HEX))),
            ("Twilio key", format!("SK{}", drawn(32, HEX))),
            ("DigitalOcean token", format!("dop_v1_{}", drawn(64, HEX))),
            ("Databricks token", format!("dapi{}", drawn(32, HEX))),
            ("Shopify token", format!("shpat_{}", drawn(32, HEX))),
            ("Vault token", format!("hvs.{}", a(90))),
            ("Docker token", format!("dckr_pat_{}", a(27))),
            ("Azure storage key", format!("AccountKey=>{}==<", a(86))),
            ("Atlassian token", format!("ATATT3xFfGF0{}", a(180))),
            ("service key", format!("gsk_{}", a(52))),
            ("service key", format!("lin_api_{}", a(40))),
            ("Telegram bot token", format!("{}:{}", drawn(9, "1928374650"), a(35))),
            ("JSON web token", format!("eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIx{}.{}", a(20), a(43))),
            ("private key", format!("-----BEGIN RSA PRIVATE KEY-----\n{body}\n-----END RSA PRIVATE KEY-----")),
            ("private key", format!("-----BEGIN OPENSSH PRIVATE KEY-----\n{body}\n-----END OPENSSH PRIVATE KEY-----")),
            ("private key", format!("-----BEGIN PRIVATE KEY-----\\n{}\\n-----END PRIVATE KEY-----", a(64))),
            ("private key", format!("-----BEGIN EC PRIVATE KEY-----\n{body}")),
            ("age key", format!("AGE-SECRET-KEY-1{}", drawn(58, UPPER))),
            ("authorization header", format!("Authorization: Bearer >{}<", a(40))),
            ("authorization header", format!("Authorization: Basic >{}==<", a(22))),
            ("password in an address", format!("postgres://app:>{}<@db.example:5432/tides", a(12))),
            ("password in an address", "https://mirela:>s3cr3t<@git.example/tide.git".to_owned()),
            ("password in an address", format!("redis://:>{}<@cache.example", a(10))),
            ("named secret", "password: >hunter22<".to_owned()),
            ("named secret", format!("export OPENWEATHER_API_KEY=>{}<", drawn(32, HEX))),
            ("named secret", format!("{{\"client_secret\": \">{}<\"}}", a(30))),
            ("named secret", format!("{{\\\"dbPassword\\\": \\\">{}<\\\"}}", a(14))),
            ("named secret", format!("//registry.example/:_authToken=>{}<", a(30))),
            ("named secret", format!("deploy --token >{}< now", a(20))),
            ("named secret", "curl -s -u mirela:>tide-4711< https://x.example".to_owned()),
            ("named secret", "PASSWORD=\">plum pudding 9<\"".to_owned()),
            ("named secret", "{\\\"password\\\": \\\">plum pudding 9<\\\"}".to_owned()),
            ("named secret", "password='>plum pudding 9<'".to_owned()),
            ("named secret", "client_secret=\">abc\\\"def99<\"".to_owned()),
            ("named secret", "DB_PASSWORD=>Xk,29dkq!zz<".to_owned()),
            ("named secret", "DB_PASSWORD=>Xk;29d'kq&zz<".to_owned()),
            ("named secret", "connect(password=>hunter22<, user=ines)".to_owned()),
            ("named secret", "connect(user=ines,password=>hunter22<)".to_owned()),
            ("named secret", "user=ines;password=string;token=>hunter22<;x=1".to_owned()),
            ("named secret", format!("SECRET_KEY_BASE=>{}<", drawn(64, HEX))),
            ("named secret", format!("ALGOLIA_ADMIN_KEY=>{}<", drawn(32, HEX))),
            ("named secret", "db_pass = >plumtree<".to_owned()),
            ("named secret", "SMTP_PASS=>plumtree<".to_owned()),
            ("named secret", "{\"pass\": \">plumtree<\"}".to_owned()),
            ("named secret", "pass: >Hunter22x<".to_owned()),
            ("named secret", "password: `>hunter22<`".to_owned()),
            ("named secret", "**Password:** >hunter22<".to_owned()),
            ("named secret", "passwort: >Birnbaum77<".to_owned()),
            ("named secret", "Contraseña: >Manzana88<".to_owned()),
            ("named secret", "mot de passe : >Prune55<".to_owned()),
            ("named secret", "the password is >Tr33house99<".to_owned()),
            ("named secret", format!("my api key is >{}<", a(32))),
            ("named secret", "das Passwort ist `>Birnbaum77<`".to_owned()),
            ("named secret", "machine x.example login ines password >plumtree<".to_owned()),
            ("named secret", "sshpass -p >plumtree< ssh a".to_owned()),
            ("named secret", "mysql -u root -p>plumtree< db".to_owned()),
            ("named secret", "deploy --password \">plum pudding 9<\" now".to_owned()),
            ("named secret", "export DB_PASSWORD='>hunter22xyz<\n".to_owned()),
            ("named secret", "token='>abc123def456<".to_owned()),
            ("named secret", "password: '>Tr33house99, and then<\n".to_owned()),
            ("named secret", "client_secret='>abc123< def456".to_owned()),
            ("named secret", "password=\">)Xk29dkq!zz<\"".to_owned()),
            ("named secret", "deploy --password \">plum pudding 9<\n".to_owned()),
            ("password in an address", "postgresql://ines:>p@ss<@host/db".to_owned()),
            ("password in an address", "postgresql://ines:>pa/ss<@host/db".to_owned()),
            ("Netlify token", format!("nfp_{}", a(40))),
            ("Notion token", format!("secret_{}", a(43))),
            ("Terraform token", format!("{}.atlasv1.{}", a(14), a(60))),
            ("Bitbucket token", format!("ATBB{}", a(32))),
            ("Mailchimp key", format!("{}-us12", drawn(32, HEX))),
            ("Square or Facebook token", format!("EAAC{}", a(100))),
            ("Square or Facebook token", format!("EAAA{}", a(60))),
            ("Square or Facebook token", format!("sq0atp-{}", a(22))),
            ("Dropbox token", format!("sl.{}", a(130))),
            ("New Relic key", format!("NRAK-{}", drawn(27, UPPER))),
        ];
        let (redaction, mut wrong) = (Redaction::new(&["keys".to_owned()]).unwrap(), Vec::new());
        for (kind, text) in cases {
            // Where only a part is secret, it stands between > and <.
            let (before, rest) = text.split_once('>').unwrap_or(("", &text));
            let (secret, behind) = rest.rsplit_once('<').unwrap_or((rest, ""));
            let shown = format!("Take {before}{secret}{behind} for it.");
            let mut counts = BTreeMap::new();
            let redacted = redaction.apply(&shown, &mut counts);
            let expected = format!("Take {before}[key]{behind} for it.");
            if redacted != expected || counts != BTreeMap::from([(kind, 1)]) {
                wrong.push(format!("{shown}\n  {redacted} {counts:?}"));
            }
        }
        assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    }

    #[test]
    fn what_only_looks_like_a_key_stays() {
        let hex = drawn(40, HEX);
        let long = drawn(200, ALL);
        let cases = [
            "AKIA is how such keys begin, and AKIATOOSHORT is none".to_owned(),
            "ghp_ and then 36 characters; ghp_xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx".to_owned(),
            "github_pattern_matching_of_the_repository".to_owned(),
            "glpat-............................".to_owned(),
            "xoxb-your-token-goes-here".to_owned(),
            "https://hooks.slack.com/".to_owned(),
            "https://discord.com/api/webhooks/".to_owned(),
            "sk-estimator-doc-link-and-more and sk-toggleable__content_of_the_label".to_owned(),
            "sk-ant-... or sk-ant-xxxxxxxxxxxxxxxxxxxxxxxx".to_owned(),
            "task-1234567890abcdef1234567890, risk-management-of-2024-and-2025".to_owned(),
            "AIzaShort".to_owned(),
            "sk_live_ or sk_test_XXXXXXXXXXXXXXXXXXXXXXXX".to_owned(),
            "npm_config_registry and npm_lifecycle_event_of_the_present_script".to_owned(),
            "pypi-server and pypi-publish-action".to_owned(),
            "hf_hub_download_of_a_large_repository_of_models".to_owned(),
            "key-value-store-of-the-service".to_owned(),
            format!("the commit {hex} and its tree {hex}"),
            "the id 3f2a6c1e-8b7d-4e5f-9a0b-1c2d3e4f5a6b".to_owned(),
            format!("sha256:{}", drawn(64, HEX)),
            format!("integrity: sha512-{}==", drawn(86, ALL)),
            format!("data:image/png;base64,{long}"),
            "eyJhbGciOiJIUzI1NiJ9 alone is a header".to_owned(),
            "-----BEGIN PUBLIC KEY-----\nMFww\n-----END PUBLIC KEY-----".to_owned(),
            "-----BEGIN CERTIFICATE-----\nMFww\n-----END CERTIFICATE-----".to_owned(),
            "Look for the line -----BEGIN PRIVATE KEY----- in it.".to_owned(),
            "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIKq7Xw2Lm9Rt4Bz8Kc1Vn6Hs3Jd5Fg0 mirela@tide".to_owned(),
            "Authorization: Bearer <token>".to_owned(),
            "Bearer authentication-of-the-service is simple".to_owned(),
            "Authorization: Basic $(printf x | base64)".to_owned(),
            "https://tide.example:8080/a@b, git@git.example:tide/clock.git".to_owned(),
            "postgres://app:${DB_PASSWORD}@db.example/tides".to_owned(),
            "https://user:<password>@git.example".to_owned(),
            "ssh://git@git.example:22/tide".to_owned(),
            "the token expired, the password is wrong, a secret stays one".to_owned(),
            "password: string; token: String, secret: Option<String>".to_owned(),
            "fn sign(token: &str, secret: &[u8])".to_owned(),
            "api_key = os.environ[\"TIDE_KEY\"]".to_owned(),
            "token = process.env.TIDE_TOKEN".to_owned(),
            "password = getpass(\"Password: \")".to_owned(),
            "let secret = env::var(\"TIDE_SECRET\")".to_owned(),
            "password: ********, token: xxxxxxxx, secret: <hidden>".to_owned(),
            "API_KEY=your-key-here, TOKEN=$TIDE_TOKEN, SECRET={{ tide_secret }}".to_owned(),
            "max_tokens: 4096, tokens = 120000, tokenizer: cl100k_base".to_owned(),
            "passwords: three of them; secretary: Mirela Vuorinen".to_owned(),
            "if token == expected { keep(token) }".to_owned(),
            "the flag --token is needed; --password-file /run/tide".to_owned(),
            "curl -u mirela https://x.example".to_owned(),
            "tide-clock_v1_of_the_harbour, at 10:30:00".to_owned(),
            "fc-cache -f and r8 = r9 + r10; glc is short; EAAA".to_owned(),
            "SKU 0a1b9c2d8e3f7465 and dapi version 2".to_owned(),
            "M5 screws of 24 mm. Nine of them. Order them.".to_owned(),
            "ports 12345678:8080 and 127.0.0.1:6379".to_owned(),
            "hvs. and AccountKey= without a value; ?sig=short".to_owned(),
            "whsec_ and SG.short.short".to_owned(),
            "class gsk_loader_for_all_models_of_the_group_of_harbours".to_owned(),
            "dckr_pat_ and dop_v1_ are prefixes".to_owned(),
            "AGE-SECRET-KEY- is a prefix".to_owned(),
            "https://www.example.org/login?next=/a&token_type=bearer".to_owned(),
            "pwd: /home/ines/orchard, PWD=~/orchard; token: ./secrets/token".to_owned(),
            "password: yes, password: unknown; the password is the same".to_owned(),
            "PASSWORD=\"<your-password>\", PASSWORD=${PASSWORD}, password: ***, password: '********'".to_owned(),
            "{\"password\": \"Enter your password\", \"reset\": \"Passwort vergessen\"}".to_owned(),
            "password: 'Password is required'; token: 'a noun phrase'".to_owned(),
            "password = input(\"Password: \") or die(\"bad thing\")".to_owned(),
            "(token:string,secret:string) and connect(password=passwd,user=user)".to_owned(),
            "the token is base64-encoded, the secret is out, the api key is required".to_owned(),
            "the password is stored in src/store2.rs; token: `src/token2.rs`, password: `hashPassword`".to_owned(),
            "2 tests pass: all good; compass: north9east; low_pass = 4000.0; bypass: enabled9x".to_owned(),
            "mysql -p db and mysqldump --port 3306; sshpass -p $PASS".to_owned(),
            "a machine that lets people login shows a password field".to_owned(),
            "https://tide.example:8080/@scope/a and http://a.example:org/b@v1".to_owned(),
            "ATBB and EAAA and nfp_ and sl.short and NRAK- are prefixes".to_owned(),
            "signing_key: the_key_of_the_harbour, master_key = default".to_owned(),
            "version_token: v1.2.3, SECRET := env(x)".to_owned(),
            "DB_PASSWORD=\nDB_USER=ines\nsecret:\n  name: tide".to_owned(),
        ];
        let (redaction, mut wrong) = (Redaction::new(&["keys".to_owned()]).unwrap(), Vec::new());
        for text in cases {
            let mut counts = BTreeMap::new();
            let redacted = redaction.apply(&text, &mut counts);
            if redacted != text {
                wrong.push(format!("{text}\n  {redacted} {counts:?}"));
            }
        }
        assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    }

    fn check(patterns: &[&str], cases: &[(&str, &str)]) {
        let patterns: Vec<String> = patterns.iter().map(|p| (*p).to_owned()).collect();
        let redaction = Redaction::new(&patterns).unwrap();
        for (text, expected) in cases {
            let mut counts = BTreeMap::new();
            assert_eq!(redaction.apply(text, &mut counts), *expected, "{text}");
            assert_eq!(counts.is_empty(), text == expected, "{text}: {counts:?}");
        }
    }

    #[test]
    fn secrets_are_taken_out_and_the_rest_stays() {
        let token = ["xox", "b-123456789012-abcdefGHIJ"].concat();
        let github = ["gh", "p_abcdefghijklmnopqrstuvwxyz0123456789"].concat();
        check(
            &["secrets"],
            &[
                ("Write to ann.b+x@mail.example.org, please.", "Write to [address], please."),
                ("Ask @ann at 10:30", "Ask @ann at 10:30"),
                ("Card 4111 1111 1111 1111 till 05/27", "Card [card] till 05/27"),
                ("4111-1111-1111-1112 has a wrong check digit", "4111-1111-1111-1112 has a wrong check digit"),
                ("ts 1700000000000 and 1454841601.000002", "ts 1700000000000 and 1454841601.000002"),
                (&format!("the bot has {token} now"), "the bot has [key] now"),
                (&github, "[key]"),
                ("password: hunter22, ok?", "password: [key], ok?"),
                ("API_KEY=\"abcd1234\"", "API_KEY=\"[key]\""),
                ("the token expired", "the token expired"),
                ("postgres://app:s3cret@db.example/x", "postgres://app:[key]@db.example/x"),
                ("-----BEGIN RSA PRIVATE KEY-----\nabc\n-----END RSA PRIVATE KEY-----.", "[key]."),
                ("Call +49 170 1234567 or (555) 010-1234", "Call [phone] or [phone]"),
                ("Call 030/12345678 or 0044 20 7946 0958.", "Call [phone] or [phone]."),
                ("On 2024-05-01 at 10:00, 1,000,000 of 3.5", "On 2024-05-01 at 10:00, 1,000,000 of 3.5"),
                ("192.168.100.200 and 3 000 000", "192.168.100.200 and 3 000 000"),
            ],
        );
    }

    #[test]
    fn patterns_of_the_user_join_the_set() {
        check(
            &["secrets", "PROJ-[0-9]+", "(?i)nightfall"],
            &[("a@b.example: PROJ-12 is Nightfall", "[address]: [redacted] is [redacted]")],
        );
        check(&["\\b"], &[("a b", "[redacted]a[redacted] [redacted]b[redacted]")]);
        check(&[], &[("a@b.example", "a@b.example")]);
        check(&["none"], &[("password: hunter22", "password: hunter22")]);
        check(&["keys"], &[("a@b.example, password: hunter22", "a@b.example, password: [key]")]);
    }

    #[test]
    fn a_list_of_assignments_is_read_once() {
        let list = "password=string,".repeat(20_000) + "token=hunter22,x=1";
        let mut counts = BTreeMap::new();
        let masked = Redaction::new(&["keys".to_owned()]).unwrap().apply(&list, &mut counts).into_owned();
        assert!(masked.ends_with("password=string,token=[key],x=1"), "{}", &masked[masked.len() - 60..]);
    }

    #[test]
    fn a_pattern_that_is_wrong_is_named() {
        for (pattern, word) in [("a(", "regular expression"), ("x*", "empty text")] {
            let error = Redaction::new(&[pattern.to_owned()]).err().unwrap().to_string();
            assert!(error.starts_with("source.redact: ") && error.contains(word), "{error}");
        }
    }
}
