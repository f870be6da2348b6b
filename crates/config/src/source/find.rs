//! Where the configuration is: `-c`, else `MAINSTAY_CONFIG`, else `./mainstay.toml`, else
//! `/etc/mainstay/`. A place that was named is never passed over in silence.

use crate::Context;
use mainstay_core::text::bytes;
use std::path::{Path, PathBuf};

const HERE: &str = "./mainstay.toml";
const SYSTEM: &str = "/etc/mainstay/";

pub fn find(explicit: Option<&Path>, env: &Context) -> Result<PathBuf, String> {
    find_in(explicit, env, Path::new(HERE), Path::new(SYSTEM))
}

fn find_in(
    explicit: Option<&Path>,
    ctx: &Context,
    here: &Path,
    system: &Path,
) -> Result<PathBuf, String> {
    let named = |path: &Path, by: &str| match path.try_exists() {
        Ok(true) => Ok(path.to_owned()),
        Ok(false) => Err(format!("there is no configuration at {} ({by})", path.display())),
        Err(error) => Err(format!("cannot look at {} ({by}): {error}", path.display())),
    };
    if let Some(path) = explicit {
        return named(path, "given with -c");
    }
    if let Some(path) = ctx.env.get("MAINSTAY_CONFIG").filter(|path| !path.is_empty()) {
        return named(Path::new(&bytes::to_os(path)), "given with MAINSTAY_CONFIG");
    }
    [here, system].into_iter().find(|path| path.exists()).map(Path::to_owned).ok_or_else(|| {
        format!(
            "no configuration found: -c is not given, MAINSTAY_CONFIG is not set, there is no {} \
             and no {}; write one, or run a single command with: mainstay run -- COMMAND",
            here.display(),
            system.display()
        )
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ctx(config: Option<&str>) -> Context {
        let env = config.map(|path| ("MAINSTAY_CONFIG".to_owned(), path.to_owned()));
        Context { host_name: "h".into(), env: env.into_iter().collect(), ..Context::default() }
    }

    #[test]
    fn what_is_named_wins_over_what_lies_around() {
        let (this, gone) = (Path::new("Cargo.toml"), Path::new("/nonexistent"));
        assert_eq!(find_in(Some(this), &ctx(Some("/x")), gone, gone), Ok(this.into()));
        assert_eq!(find_in(None, &ctx(Some("Cargo.toml")), gone, gone), Ok(this.into()));
        assert_eq!(find_in(None, &ctx(Some("")), this, gone), Ok(this.into()));
        assert_eq!(find_in(None, &ctx(None), gone, Path::new("src")), Ok("src".into()));
    }

    #[test]
    fn a_named_place_that_is_missing_is_an_error_and_not_a_reason_to_look_further() {
        let (this, gone) = (Path::new("Cargo.toml"), Path::new("/nonexistent"));
        let error = find_in(Some(gone), &ctx(None), this, this).expect_err("it is missing");
        assert!(error.contains("/nonexistent (given with -c)"), "{error}");
        let error = find_in(None, &ctx(Some("/gone")), this, this).expect_err("it is missing");
        assert!(error.contains("/gone (given with MAINSTAY_CONFIG)"), "{error}");
    }

    #[test]
    fn finding_nothing_names_every_place_looked_at() {
        let error = find_in(None, &ctx(None), Path::new("/no/a"), Path::new("/no/b/"))
            .expect_err("nothing is there");
        for place in ["-c", "MAINSTAY_CONFIG", "/no/a", "/no/b/"] {
            assert!(error.contains(place), "{error}");
        }
    }
}
