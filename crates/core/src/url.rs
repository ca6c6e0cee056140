//! One spelling per web address, so that equal addresses make equal keys.
//!
//! [`normalize`] follows the URL Standard for parsing and RFC 3986 §6 for the spelling:
//!
//! - white space around it is dropped; `example.org/x` is read as `https://example.org/x`
//! - only `http` and `https`; scheme and host in lower case, the host in its ASCII form (punycode,
//!   plain IPv4 and IPv6), without a trailing dot
//! - the scheme's own port is dropped; dot segments are resolved; an empty path becomes `/`
//! - percent-encoding: unreserved characters are written plainly, whatever may not stand in a URL is
//!   encoded, hex digits are upper case; reserved characters stay as they were written, for `%2F`
//!   and `/` mean different things
//! - query: tracking parameters ([`TRACKING`]) and empty pieces are dropped, the rest is sorted by
//!   name, then value; duplicates and empty values stay
//! - the fragment is dropped; a user name stays; a password is refused, for it must not end up in keys
//!
//! `www.`, letter case of the path and a slash at its end are kept: they can make a difference.

use std::fmt::Write;
use url::{ParseError, Url};

/// Query parameters that say where a visitor came from and not what is asked for. A name that ends
/// in `*` stands for all that begin so; letter case does not matter.
pub const TRACKING: &[&str] = &[
    "_ga",
    "_gl",
    "_hsenc",
    "_hsmi",
    "dclid",
    "fbclid",
    "gad_source",
    "gbraid",
    "gclid",
    "gclsrc",
    "igsh",
    "igshid",
    "li_fat_id",
    "mc_cid",
    "mc_eid",
    "mkt_tok",
    "msclkid",
    "oly_anon_id",
    "oly_enc_id",
    "ref_src",
    "ref_url",
    "srsltid",
    "ttclid",
    "twclid",
    "utm_*",
    "vero_id",
    "wbraid",
    "yclid",
];

/// Why a text is not a web address that we take. The text itself is not repeated: it may hold a
/// password.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum BadUrl {
    /// Nothing there.
    #[error("the URL is empty")]
    Empty,
    /// Not the web.
    #[error("the URL has the scheme {0:?}; only http and https are accepted")]
    Scheme(String),
    /// A secret, which does not belong into keys, logs and lists.
    #[error("the URL holds a password; leave it out and hand secrets over another way")]
    Password,
    /// A host that no name server could know.
    #[error("the URL's host {0:?} has an empty label")]
    Host(String),
    /// Not a URL at all.
    #[error("not a URL: {0}")]
    Malformed(#[from] ParseError),
}

/// The one spelling of a web address; see the module for the rules. `normalize(normalize(x))` is
/// `normalize(x)`.
pub fn normalize(text: &str) -> Result<String, BadUrl> {
    let url = parse(text)?;
    let mut out = format!("{}://", url.scheme());
    if !url.username().is_empty() {
        encode(&mut out, url.username(), "");
        out.push('@');
    }
    out.push_str(bare_host(&url)?);
    if let Some(port) = url.port() {
        let _ = write!(out, ":{port}");
    }
    encode(&mut out, url.path(), ":@/");
    let mut separator = '?';
    for (_, _, piece) in query(&url) {
        out.push(separator);
        out.push_str(&piece);
        separator = '&';
    }
    Ok(out)
}

/// The host of a web address in its one spelling, without the port; an IPv6 address in brackets.
pub fn host(text: &str) -> Result<String, BadUrl> {
    bare_host(&parse(text)?).map(str::to_owned)
}

fn parse(text: &str) -> Result<Url, BadUrl> {
    let text = text.trim();
    if text.is_empty() {
        return Err(BadUrl::Empty);
    }
    let url = match scheme(text) {
        Some(_) => Url::parse(text)?,
        None => Url::parse(&format!("https://{}", text.trim_start_matches('/')))?,
    };
    if !matches!(url.scheme(), "http" | "https") {
        return Err(BadUrl::Scheme(url.scheme().to_owned()));
    }
    if url.password().is_some() {
        return Err(BadUrl::Password);
    }
    Ok(url)
}

/// The scheme that `text` names. `localhost:3000/x` names none: what follows its colon is a port.
fn scheme(text: &str) -> Option<&str> {
    let (name, rest) = text.split_once(':')?;
    let named = name.starts_with(|c: char| c.is_ascii_alphabetic())
        && name.bytes().all(|b| b.is_ascii_alphanumeric() || matches!(b, b'+' | b'-' | b'.'));
    let port = rest.split(['/', '?', '#', '\\']).next().unwrap_or_default();
    let is_port = !port.is_empty() && port.bytes().all(|b| b.is_ascii_digit());
    (named && !is_port).then_some(name)
}

fn bare_host(url: &Url) -> Result<&str, BadUrl> {
    let host = url.host_str().unwrap_or_default();
    let bare = host.strip_suffix('.').unwrap_or(host);
    if bare.split('.').any(str::is_empty) {
        return Err(BadUrl::Host(host.to_owned()));
    }
    Ok(bare)
}

/// The parameters that are kept, in their order: name, value and how both are written. `a` and `a=`
/// differ only in the last, which thus decides between them.
fn query(url: &Url) -> Vec<(String, String, String)> {
    let mut kept = vec![];
    for piece in url.query().unwrap_or_default().split('&').filter(|piece| !piece.is_empty()) {
        let mut written = String::with_capacity(piece.len());
        encode(&mut written, piece, ":@/?");
        let (name, value) = written.split_once('=').unwrap_or((&written, ""));
        if !is_tracking(name) {
            kept.push((name.to_owned(), value.to_owned(), written));
        }
    }
    kept.sort();
    kept
}

fn is_tracking(name: &str) -> bool {
    TRACKING.iter().any(|known| match known.strip_suffix('*') {
        Some(start) => name.get(..start.len()).is_some_and(|head| head.eq_ignore_ascii_case(start)),
        None => name.eq_ignore_ascii_case(known),
    })
}

/// Writes a part of a URL in its one spelling. `also` lists what may stand in this part besides the
/// unreserved characters and the sub-delimiters.
fn encode(out: &mut String, part: &str, also: &str) {
    let bytes = part.as_bytes();
    let mut at = 0;
    while at < bytes.len() {
        let pair =
            (bytes[at] == b'%').then(|| hex(bytes.get(at + 1)?).zip(hex(bytes.get(at + 2)?))).flatten();
        let (byte, encoded) = match pair {
            Some((high, low)) => (high << 4 | low, true),
            // A percent sign that encodes nothing stands for itself.
            None => (bytes[at], false),
        };
        at += if encoded { 3 } else { 1 };
        let reserved = b"!$&'()*+,;=".contains(&byte) || also.as_bytes().contains(&byte);
        let unreserved = byte.is_ascii_alphanumeric() || b"-._~".contains(&byte);
        if unreserved || (reserved && !encoded) {
            out.push(char::from(byte));
        } else {
            let _ = write!(out, "%{byte:02X}");
        }
    }
}

fn hex(digit: &u8) -> Option<u8> {
    char::from(*digit).to_digit(16).and_then(|value| u8::try_from(value).ok())
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const PAIRS: &[(&str, &str)] = &[
        // White space, scheme, host
        ("http://example.org", "http://example.org/"),
        ("  https://example.org/x \n", "https://example.org/x"),
        ("HTTP://EXAMPLE.ORG/Path", "http://example.org/Path"),
        ("example.org/x", "https://example.org/x"),
        ("example.org", "https://example.org/"),
        ("//example.org/x", "https://example.org/x"),
        ("localhost:3000/x", "https://localhost:3000/x"),
        ("example.org:443?a=1", "https://example.org/?a=1"),
        ("http:example.org", "http://example.org/"),
        ("http:\\\\example.org\\a", "http://example.org/a"),
        ("https://www.example.org/", "https://www.example.org/"),
        ("https://example.org./x", "https://example.org/x"),
        ("https://bücher.example/", "https://xn--bcher-kva.example/"),
        ("https://BÜCHER.example/", "https://xn--bcher-kva.example/"),
        ("https://xn--bcher-kva.example/", "https://xn--bcher-kva.example/"),
        ("https://例え.テスト/", "https://xn--r8jz45g.xn--zckzah/"),
        ("https://ex%61mple.org/", "https://example.org/"),
        ("http://0x7f.1/", "http://127.0.0.1/"),
        ("http://127.0.0.1./", "http://127.0.0.1/"),
        ("http://[0:0::1]:80/", "http://[::1]/"),
        // Ports and users
        ("http://example.org:80/", "http://example.org/"),
        ("https://example.org:443/", "https://example.org/"),
        ("http://example.org:443/", "http://example.org:443/"),
        ("https://example.org:8443/", "https://example.org:8443/"),
        ("https://example.org:/", "https://example.org/"),
        ("https://ann@example.org/", "https://ann@example.org/"),
        ("https://ann:@example.org/", "https://ann@example.org/"),
        ("https://a%6en@example.org/", "https://ann@example.org/"),
        // Paths
        ("https://example.org/a/./b/../c", "https://example.org/a/c"),
        ("https://example.org/../../x", "https://example.org/x"),
        ("https://example.org/a/%2e%2E/b", "https://example.org/b"),
        ("https://example.org/a//b/", "https://example.org/a//b/"),
        ("https://example.org/%7Ejoe/%41", "https://example.org/~joe/A"),
        ("https://example.org/a%2fb%3a", "https://example.org/a%2Fb%3A"),
        ("https://example.org/a b", "https://example.org/a%20b"),
        ("https://example.org/ü", "https://example.org/%C3%BC"),
        ("https://example.org/%c3%bc", "https://example.org/%C3%BC"),
        ("https://example.org/100%", "https://example.org/100%25"),
        ("https://example.org/%zz", "https://example.org/%25zz"),
        ("https://example.org/%2%45", "https://example.org/%252E"),
        ("https://example.org/a|b[0]", "https://example.org/a%7Cb%5B0%5D"),
        ("https://example.org/a,b;c=d", "https://example.org/a,b;c=d"),
        // Queries and fragments
        ("https://example.org/#top", "https://example.org/"),
        ("https://example.org/?", "https://example.org/"),
        ("https://example.org?b=2&a=1", "https://example.org/?a=1&b=2"),
        ("https://example.org/?b=2&a=2&a=1", "https://example.org/?a=1&a=2&b=2"),
        ("https://example.org/?a=1&a=1", "https://example.org/?a=1&a=1"),
        ("https://example.org/?b=&a&a=", "https://example.org/?a&a=&b="),
        ("https://example.org/?a=&a", "https://example.org/?a&a="),
        ("https://example.org/?&&a=1&", "https://example.org/?a=1"),
        ("https://example.org/?ab=1&a=2", "https://example.org/?a=2&ab=1"),
        ("https://example.org/?q=a+b&r=a%20b", "https://example.org/?q=a+b&r=a%20b"),
        ("https://example.org/?u=https://x/?y", "https://example.org/?u=https://x/?y"),
        ("https://example.org/?q='x'", "https://example.org/?q=%27x%27"),
        ("https://example.org/?a=1%26b=2", "https://example.org/?a=1%26b=2"),
        ("https://example.org/?utm_source=x&UTM_Medium=y&id=7&fbclid=z", "https://example.org/?id=7"),
        ("https://example.org/?gclid=1#x", "https://example.org/"),
        ("https://example.org/?utm%5Fsource=x", "https://example.org/"),
        ("https://example.org/?utm=1&ref=2", "https://example.org/?ref=2&utm=1"),
    ];

    #[test]
    fn addresses_have_one_spelling() {
        for (text, normal) in PAIRS {
            assert_eq!(normalize(text).as_deref(), Ok(*normal), "{text}");
            assert_eq!(normalize(normal).as_deref(), Ok(*normal), "{text}, again");
        }
    }

    #[test]
    fn what_is_no_web_address_is_refused() {
        for (text, problem) in [
            ("", "empty"),
            (" \t", "empty"),
            ("ftp://example.org/", "\"ftp\""),
            ("mailto:ann@example.org", "\"mailto\""),
            ("javascript:alert(1)", "\"javascript\""),
            ("file:///etc/passwd", "\"file\""),
            ("https://ann:hunter2@example.org/", "password"),
            ("https://example..org/", "empty label"),
            ("https://example.org../", "empty label"),
            ("https://.example.org/", "empty label"),
            ("https://", "empty host"),
            ("https://exa mple.org/", "not a URL"),
            ("https://example.org:99999/", "port"),
        ] {
            let error = normalize(text).unwrap_err().to_string();
            assert!(error.contains(problem), "{text}: {error}");
            assert!(!error.contains("hunter2"), "{error}");
        }
    }

    #[test]
    fn the_host_is_that_of_the_one_spelling() {
        assert_eq!(host("HTTPS://Bücher.Example.:8443/x").as_deref(), Ok("xn--bcher-kva.example"));
        assert_eq!(host("example.org").as_deref(), Ok("example.org"));
        assert_eq!(host("http://[::1]:8080/").as_deref(), Ok("[::1]"));
        assert_eq!(host("nonsense:x"), Err(BadUrl::Scheme("nonsense".into())));
    }

    proptest! {
        #[test]
        fn normal_stays_normal(
            text in "(https?:(//)?|//|)([a-zA-Z%@0-9]{0,4}@)?[-a-zA-Z0-9.%ßÜ]{1,12}\\.?(:[0-9]{0,5})?[/\\\\?#&=%a-f0-9.;|'\" ü+:@]{0,24}",
        ) {
            if let Ok(once) = normalize(&text) {
                prop_assert_eq!(normalize(&once), Ok(once.clone()), "{}", text);
                prop_assert_eq!(host(&once), host(&text));
            }
        }

        #[test]
        fn the_order_of_parameters_does_not_matter(
            (one, other) in proptest::collection::vec("[a-c%=+]{0,4}", 0..6)
                .prop_flat_map(|pieces| (Just(pieces.clone()), Just(pieces).prop_shuffle())),
        ) {
            let at = |pieces: &[String]| normalize(&format!("https://x.org/?{}", pieces.join("&")));
            prop_assert_eq!(at(&one), at(&other));
        }

        #[test]
        fn no_text_panics(text in "\\PC*") {
            let _ = normalize(&text);
            let _ = host(&text);
        }
    }
}
