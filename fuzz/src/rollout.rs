//! Readers of a rollout: profiles, files of state, what instances have counted.

use crate::targets::Target;
use mainstay_rollout::fuzz;

/// The first byte tells the format: JSON, YAML, TOML or text.
pub(crate) const PROFILE: Target = Target {
    name: "profile",
    run: fuzz::profile,
    seeds: || {
        let texts = [
            "\0{\"port\": 80, \"hosts\": [\"a\"], \"secrets\": {\"k\": {\"file\": \"/x\"}}}",
            "\x01port: 80\nhosts: &h [a, b]\nmore: *h\nbase: &b {x: 1}\nall: {<<: *b, y: ~}\n",
            "\x02port = 80\nat = 2026-01-02T03:04:05Z\n[tls]\nrate = 0.5\n[[hosts]]\nname = 'a'\n",
            "\x03text",
        ];
        texts.iter().map(|text| text.as_bytes().to_vec()).collect()
    },
    tokens: &[
        "{",
        "}",
        "[",
        "]",
        ":",
        "- ",
        "&a",
        "*a",
        "<<: ",
        "!!binary ",
        "|\n",
        "'''",
        "\"",
        "1e999",
        ".inf",
        "nan",
        "\u{0}",
        "secret_id",
        "aws:secrets",
        "0x",
        "~",
        "\n",
        "  ",
    ],
    short: 4000,
};

pub(crate) const STATE: Target = Target {
    name: "rollout-state",
    run: fuzz::state,
    seeds: || {
        let texts = [
            "{\"content_type\":\"text/plain\",\"secrets\":{}}\nbody",
            "{\"content_type\":\"application/json\",\"secrets\":{\"k\":{\"value\":\"x\"}}}\n{}",
            "mainstay-rollout 1 content 45 0 0\n{}",
        ];
        texts.iter().map(|text| text.as_bytes().to_vec()).collect()
    },
    tokens: &["mainstay-rollout ", " 1 ", "content", "\n", "{", "}", "\"value\":", "\"secrets\":"],
    short: 10_000,
};

pub(crate) const COUNTS: Target = Target {
    name: "raindrops",
    run: fuzz::counts,
    seeds: || {
        let texts = [
            "calling: 2\nwriting: 0\nrequests: 10\nfailures: 1\n/run/a.sock active: 1\n",
            "{\"requests\": 20, \"failures\": 1}",
        ];
        texts.iter().map(|text| text.as_bytes().to_vec()).collect()
    },
    tokens: &["requests", "failures", ": ", "\n", "{", "}", "18446744073709551615", "-1", "\""],
    short: 10_000,
};
