//! The name under which a host's limits are counted.

use reqwest::Url;

/// The host of a URL as limits name it: lower case, IDN in its ASCII form, no user, no final dot,
/// and the port only where it is not the scheme's own. `None` for a text that is no URL with a host.
pub fn host_key(url: &str) -> Option<String> {
    host_of(&Url::parse(url).ok()?)
}

/// [`host_key`] of a URL that was parsed already.
pub(super) fn host_of(url: &Url) -> Option<String> {
    let host = url.host_str()?.trim_end_matches('.').to_ascii_lowercase();
    if host.is_empty() {
        return None;
    }
    // `Url` gives no port where it is the scheme's default.
    Some(match url.port() {
        Some(port) => format!("{host}:{port}"),
        None => host,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_host_has_one_name() {
        for (url, key) in [
            ("https://Example.ORG/a/b?c#d", "example.org"),
            ("https://example.org:443/", "example.org"),
            ("http://example.org:80/", "example.org"),
            ("http://example.org:443/", "example.org:443"),
            ("https://example.org:8443/", "example.org:8443"),
            ("https://user:secret@example.org/", "example.org"),
            ("https://example.org./", "example.org"),
            ("https://Bücher.example/", "xn--bcher-kva.example"),
            ("https://xn--bcher-kva.example/", "xn--bcher-kva.example"),
            ("http://[::1]/", "[::1]"),
            ("http://[0:0:0:0:0:0:0:1]:8080/", "[::1]:8080"),
            ("http://127.0.0.1:9/", "127.0.0.1:9"),
            ("http://0x7f.1/", "127.0.0.1"),
        ] {
            assert_eq!(host_key(url).as_deref(), Some(key), "{url}");
        }
    }

    #[test]
    fn what_has_no_host_has_no_name() {
        for url in
            ["", "example.org", "/a/b", "mailto:a@example.org", "data:,x", "file:///etc/passwd", "http://"]
        {
            assert_eq!(host_key(url), None, "{url}");
        }
    }
}
