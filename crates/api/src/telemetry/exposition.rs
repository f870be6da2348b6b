//! The two text formats of metrics: OpenMetrics 1.0, and what Prometheus had before it.
//!
//! Written by hand: the crate at hand knows neither summaries nor the older format. A counter whose
//! name does not end in `_total` cannot be a counter in OpenMetrics; it is `unknown` there, so that
//! its series keeps its name.

use std::fmt::Write as _;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ExpositionFormat {
    OpenMetrics,
    Prometheus,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum MetricType {
    Counter,
    Gauge,
    Histogram,
    Summary,
    Info,
}

impl ExpositionFormat {
    /// Plain text, unless the client asks for OpenMetrics by its name, and for nothing more.
    pub(crate) fn wanted(accept: Option<&str>) -> ExpositionFormat {
        let weight = |wanted: &str| {
            let ranges = accept.unwrap_or_default().split(',');
            let weights = ranges.filter_map(|range| {
                let mut parts = range.split(';').map(str::trim);
                let kind = parts.next()?.to_ascii_lowercase();
                let weight = parts.find_map(|part| part.strip_prefix("q="));
                let weight = weight.map_or(Some(1.0), |text| text.parse::<f64>().ok())?;
                (kind == wanted).then_some(weight)
            });
            weights.fold(0.0, f64::max)
        };
        let (open, plain) = (weight("application/openmetrics-text"), weight("text/plain"));
        match open > 0.0 && open >= plain {
            true => ExpositionFormat::OpenMetrics,
            false => ExpositionFormat::Prometheus,
        }
    }

    pub(crate) fn content_type(self) -> &'static str {
        match self {
            ExpositionFormat::OpenMetrics => {
                "application/openmetrics-text; version=1.0.0; charset=utf-8"
            }
            ExpositionFormat::Prometheus => "text/plain; version=0.0.4; charset=utf-8",
        }
    }
}

#[derive(Debug)]
pub(crate) struct Exposition {
    format: ExpositionFormat,
    text: String,
}

type Labels<'a> = &'a [(&'a str, &'a str)];

impl Exposition {
    pub(crate) fn new(format: ExpositionFormat) -> Exposition {
        Exposition { format, text: String::with_capacity(16 << 10) }
    }

    /// Begins a family. `name` is that of its samples, without the suffixes of histograms and
    /// summaries. Everything of a family must follow at once.
    pub(crate) fn family<'e>(
        &'e mut self,
        name: &'e str,
        kind: MetricType,
        help: &str,
    ) -> Family<'e> {
        let (kind, family) = match (self.format, kind) {
            (ExpositionFormat::OpenMetrics, MetricType::Counter) => {
                match name.strip_suffix("_total") {
                    Some(family) => ("counter", family),
                    None => ("unknown", name),
                }
            }
            (ExpositionFormat::OpenMetrics, MetricType::Info) => {
                ("info", name.strip_suffix("_info").unwrap_or(name))
            }
            (ExpositionFormat::Prometheus, MetricType::Counter) => ("counter", name),
            (ExpositionFormat::Prometheus, MetricType::Info) | (_, MetricType::Gauge) => {
                ("gauge", name)
            }
            (_, MetricType::Histogram) => ("histogram", name),
            (_, MetricType::Summary) => ("summary", name),
        };
        // Writing to a String cannot fail.
        let _ = writeln!(self.text, "# TYPE {family} {kind}");
        if !help.is_empty() {
            let _ = write!(self.text, "# HELP {family} ");
            escape(&mut self.text, help, self.format == ExpositionFormat::OpenMetrics);
            self.text.push('\n');
        }
        Family { text: &mut self.text, name }
    }

    pub(crate) fn finish(mut self) -> String {
        match self.format {
            ExpositionFormat::OpenMetrics => self.text.push_str("# EOF\n"),
            ExpositionFormat::Prometheus => {}
        }
        self.text
    }
}

#[derive(Debug)]
pub(crate) struct Family<'e> {
    text: &'e mut String,
    name: &'e str,
}

impl Family<'_> {
    pub(crate) fn sample(&mut self, labels: Labels<'_>, value: f64) {
        self.line("", labels, None, value);
    }

    pub(crate) fn count(&mut self, labels: Labels<'_>, value: u64) {
        self.head("", labels, None);
        let _ = writeln!(self.text, " {value}");
    }

    /// `counts`: each value once, one more than there are bounds.
    pub(crate) fn histogram(
        &mut self,
        labels: Labels<'_>,
        bounds: &[f64],
        counts: &[u64],
        sum: f64,
    ) {
        let mut total = 0;
        for (place, count) in counts.iter().enumerate() {
            total += count;
            let bound = bounds.get(place).map_or_else(|| "+Inf".to_owned(), |it| canonical(*it));
            self.head("_bucket", labels, Some(("le", &bound)));
            let _ = writeln!(self.text, " {total}");
        }
        self.line("_sum", labels, None, sum);
        self.head("_count", labels, None);
        let _ = writeln!(self.text, " {total}");
    }

    pub(crate) fn summary(
        &mut self,
        labels: Labels<'_>,
        quantiles: &[(f64, f64)],
        count: u64,
        sum: f64,
    ) {
        for (share, value) in quantiles {
            self.line("", labels, Some(("quantile", &canonical(*share))), *value);
        }
        self.line("_sum", labels, None, sum);
        self.head("_count", labels, None);
        let _ = writeln!(self.text, " {count}");
    }

    fn line(&mut self, suffix: &str, labels: Labels<'_>, more: Option<(&str, &str)>, value: f64) {
        self.head(suffix, labels, more);
        let _ = match value {
            value if value.is_nan() => writeln!(self.text, " NaN"),
            f64::INFINITY => writeln!(self.text, " +Inf"),
            f64::NEG_INFINITY => writeln!(self.text, " -Inf"),
            // Most are, and the shortest text of a fraction is not soon found.
            value if value.trunc() == value && value.abs() < EXACT => {
                writeln!(self.text, " {}", value as i64)
            }
            value => writeln!(self.text, " {value}"),
        };
    }

    fn head(&mut self, suffix: &str, labels: Labels<'_>, more: Option<(&str, &str)>) {
        self.text.push_str(self.name);
        self.text.push_str(suffix);
        let mut open = '{';
        for (name, value) in labels.iter().copied().chain(more) {
            self.text.push(open);
            self.text.push_str(name);
            self.text.push_str("=\"");
            escape(self.text, value, true);
            self.text.push('"');
            open = ',';
        }
        if open == ',' {
            self.text.push('}');
        }
    }
}

/// Whole numbers below it are exact.
const EXACT: f64 = 1e15;

/// A bound as it must look to be recognised as the same number: with a point, without exponent.
fn canonical(number: f64) -> String {
    let text = number.to_string();
    if text.contains('.') { text } else { text + ".0" }
}

fn escape(text: &mut String, raw: &str, quotes: bool) {
    let mut rest = raw;
    let is_special = |byte: u8| matches!(byte, b'\\' | b'\n') || (byte == b'"' && quotes);
    while let Some(at) = rest.bytes().position(is_special) {
        let (plain, special) = rest.split_at(at);
        text.push_str(plain);
        text.push_str(match special.as_bytes()[0] {
            b'\\' => "\\\\",
            b'\n' => "\\n",
            _ => "\\\"",
        });
        rest = &special[1..];
    }
    text.push_str(rest);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_format_is_what_the_client_wants_most() {
        let prometheus = "application/openmetrics-text;version=1.0.0;q=0.5,\
                          text/plain;version=0.0.4;q=0.3,*/*;q=0.2";
        for (accept, expected) in [
            (None, ExpositionFormat::Prometheus),
            (Some("*/*"), ExpositionFormat::Prometheus),
            (Some("text/plain"), ExpositionFormat::Prometheus),
            (Some("text/plain; version=0.0.4"), ExpositionFormat::Prometheus),
            (Some("text/plain, */*;q=0.1"), ExpositionFormat::Prometheus),
            (Some("text/plain;q=0.5, */*"), ExpositionFormat::Prometheus),
            (Some("application/openmetrics-text"), ExpositionFormat::OpenMetrics),
            (Some("application/openmetrics-text, text/plain"), ExpositionFormat::OpenMetrics),
            (
                Some("application/openmetrics-text;q=0.1, text/plain;q=0.9"),
                ExpositionFormat::Prometheus,
            ),
            (Some(prometheus), ExpositionFormat::OpenMetrics),
            (Some("text/html"), ExpositionFormat::Prometheus),
            (Some(""), ExpositionFormat::Prometheus),
        ] {
            assert_eq!(ExpositionFormat::wanted(accept), expected, "{accept:?}");
        }
    }

    fn both(write: fn(&mut Exposition)) -> [String; 2] {
        [ExpositionFormat::OpenMetrics, ExpositionFormat::Prometheus].map(|format| {
            let mut exposition = Exposition::new(format);
            write(&mut exposition);
            exposition.finish()
        })
    }

    #[test]
    fn a_counter_keeps_its_name_in_either_format() {
        let [open, plain] = both(|it| {
            it.family("a_total", MetricType::Counter, "say \"hi\"\\\n")
                .count(&[("l", "x\"\\\n")], 2);
            it.family("b", MetricType::Counter, "").sample(&[], 0.5);
        });
        assert_eq!(
            open,
            "# TYPE a counter\n# HELP a say \\\"hi\\\"\\\\\\n\na_total{l=\"x\\\"\\\\\\n\"} 2\n\
             # TYPE b unknown\nb 0.5\n# EOF\n"
        );
        assert_eq!(
            plain,
            "# TYPE a_total counter\n# HELP a_total say \"hi\"\\\\\\n\n\
             a_total{l=\"x\\\"\\\\\\n\"} 2\n# TYPE b counter\nb 0.5\n"
        );
    }

    #[test]
    fn buckets_add_up_and_bounds_have_a_point() {
        let [open, _] = both(|it| {
            it.family("h", MetricType::Histogram, "").histogram(
                &[("job", "a")],
                &[0.000_05, 1.0],
                &[1, 2, 3],
                4.5,
            );
        });
        assert_eq!(
            open,
            "# TYPE h histogram\nh_bucket{job=\"a\",le=\"0.00005\"} 1\n\
             h_bucket{job=\"a\",le=\"1.0\"} 3\nh_bucket{job=\"a\",le=\"+Inf\"} 6\n\
             h_sum{job=\"a\"} 4.5\nh_count{job=\"a\"} 6\n# EOF\n"
        );
    }

    #[test]
    fn a_summary_without_values_has_quantiles_that_are_no_numbers() {
        let [open, _] = both(|it| {
            it.family("s", MetricType::Summary, "").summary(
                &[],
                &[(0.5, f64::NAN), (1.0, 2.0)],
                0,
                0.0,
            );
        });
        let expected = "# TYPE s summary\ns{quantile=\"0.5\"} NaN\ns{quantile=\"1.0\"} 2\n\
                        s_sum 0\ns_count 0\n# EOF\n";
        assert_eq!(open, expected);
    }
}
