//! Cron expressions: minute, hour, day of month, month, day of week, or `@daily` and the like.

/// Why a text is no usable cron expression.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum CronError {
    #[error("has {0} fields, a cron expression has 5")]
    Fields(usize),
    #[error("is not a cron expression: {0}")]
    Expression(String),
    #[error("is never due")]
    NeverDue,
}

/// Whether the text is one that comes due.
pub fn check(text: &str) -> Result<(), CronError> {
    let fields = text.split_whitespace().count();
    if fields != 5 && !text.starts_with('@') {
        return Err(CronError::Fields(fields));
    }
    let expression = text.parse::<croner::Cron>().map_err(|error| {
        let error = error.to_string();
        let error = error.trim_end_matches('.').trim_start_matches("Component error: ");
        CronError::Expression(error.to_owned())
    })?;
    let begin = jiff::Timestamp::UNIX_EPOCH.to_zoned(jiff::tz::TimeZone::UTC);
    match expression.find_next_occurrence(&begin, false) {
        Ok(_) => Ok(()),
        Err(_) => Err(CronError::NeverDue),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_expression_has_five_fields_and_comes_due() {
        for text in ["0 3 * * *", "*/10 * * * *", "@daily", "0 0 29 2 *", "0 0 * JAN MON"] {
            assert_eq!(check(text), Ok(()), "{text}");
        }
        assert_eq!(check("* * *"), Err(CronError::Fields(3)));
        assert_eq!(check("0 0 31 2 *"), Err(CronError::NeverDue));
        assert!(matches!(check("60 * * * *"), Err(CronError::Expression(_))));
    }
}
