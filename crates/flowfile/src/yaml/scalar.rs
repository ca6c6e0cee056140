//! What a plain scalar is, by the core schema of YAML 1.2: `no`, `on` and `12:30` are texts.

use orchestrator_core::flow::document::Kind;
use serde_json::Number;

/// The value that a plain scalar stands for.
pub fn resolve(text: &str) -> Result<Kind, String> {
    Ok(match text {
        "" | "~" | "null" | "Null" | "NULL" => Kind::Null,
        "true" | "True" | "TRUE" => Kind::Bool(true),
        "false" | "False" | "FALSE" => Kind::Bool(false),
        _ => match number(text) {
            None => Kind::Text(text.to_owned()),
            Some(Some(number)) => Kind::Number(number),
            Some(None) => {
                return Err(format!("{text} is not a finite number; put it in quotes to have a text"));
            }
        },
    })
}

/// The number that a text is, if it is one; nothing within where it is infinite or none.
fn number(text: &str) -> Option<Option<Number>> {
    if let Some((digits, radix)) = text
        .strip_prefix("0x")
        .map(|digits| (digits, 16))
        .or(text.strip_prefix("0o").map(|digits| (digits, 8)))
    {
        // Signs are no digits, whatever `from_str_radix` says.
        let fits = digits.bytes().all(|b| char::from(b).is_digit(radix)) && !digits.is_empty();
        return fits.then(|| u64::from_str_radix(digits, radix).ok().map(Number::from));
    }
    let unsigned = text.strip_prefix(['-', '+']).unwrap_or(text);
    if matches!(unsigned, ".inf" | ".Inf" | ".INF") || matches!(text, ".nan" | ".NaN" | ".NAN") {
        return Some(None);
    }
    if !is_decimal(unsigned) {
        return None;
    }
    let whole = text.strip_prefix('+').unwrap_or(text);
    if unsigned.bytes().all(|b| b.is_ascii_digit())
        && let Some(number) =
            whole.parse::<i64>().map(Number::from).or_else(|_| whole.parse::<u64>().map(Number::from)).ok()
    {
        return Some(Some(number));
    }
    Some(text.parse().ok().and_then(Number::from_f64))
}

/// Digits with at most one point and an exponent, without a sign.
fn is_decimal(text: &str) -> bool {
    let (mantissa, exponent) = match text.split_once(['e', 'E']) {
        Some((mantissa, exponent)) => (mantissa, Some(exponent)),
        None => (text, None),
    };
    let digits = |text: &str| text.bytes().all(|b| b.is_ascii_digit());
    let mantissa_fits = match mantissa.split_once('.') {
        Some((whole, part)) => digits(whole) && digits(part) && !(whole.is_empty() && part.is_empty()),
        None => digits(mantissa) && !mantissa.is_empty(),
    };
    let exponent_fits = exponent.is_none_or(|exponent| {
        let unsigned = exponent.strip_prefix(['-', '+']).unwrap_or(exponent);
        digits(unsigned) && !unsigned.is_empty()
    });
    mantissa_fits && exponent_fits
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::{Value, json};

    fn value(text: &str) -> Value {
        orchestrator_core::flow::Node::new(resolve(text).unwrap()).to_value()
    }

    #[test]
    fn scalars_are_those_of_the_core_schema() {
        for (text, expected) in [
            ("~", json!(null)),
            ("True", json!(true)),
            ("0", json!(0)),
            ("-17", json!(-17)),
            ("+5", json!(5)),
            ("010", json!(10)),
            ("0x1F", json!(31)),
            ("0o17", json!(15)),
            ("18446744073709551615", json!(u64::MAX)),
            ("18446744073709551616", json!(18_446_744_073_709_551_616.0)),
            ("1.5", json!(1.5)),
            ("-.5e-1", json!(-0.05)),
            ("2.", json!(2.0)),
            ("6.02E+23", json!(6.02e23)),
        ] {
            assert_eq!(value(text), expected, "{text}");
        }
    }

    #[test]
    fn what_only_looks_like_another_type_is_a_text() {
        for text in [
            "no",
            "yes",
            "on",
            "off",
            "y",
            "12:30",
            "1_000",
            "0b11",
            "0x",
            "0xfg",
            "0x+1",
            "1e",
            "e5",
            ".",
            "-",
            "--1",
            "1.2.3",
            "2026-11-15",
            "tRue",
            "5m",
            "inf",
            "NaN",
            "+",
            "1e5.5",
            "-0x1F",
        ] {
            assert_eq!(value(text), json!(text), "{text}");
        }
    }

    #[test]
    fn numbers_that_json_lacks_are_refused() {
        for text in [".inf", "-.INF", "+.Inf", ".nan", "1e999", "0xFFFFFFFFFFFFFFFFF"] {
            assert!(resolve(text).unwrap_err().contains("not a finite number"), "{text}");
        }
    }
}
