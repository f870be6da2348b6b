//! Links of the pages, and the table of contents of the book.

use super::page::{self, Page};
use std::path::{Component, Path, PathBuf};

#[test]
fn every_link_of_the_pages_leads_somewhere() {
    let pages = page::all();
    let wrong: Vec<String> = pages
        .iter()
        .flat_map(|page| page.links().map(move |(line, target)| (page, line, target)))
        .filter_map(|(page, line, target)| {
            let why = leads_nowhere(page, target, &pages)?;
            Some(format!("{}:{line}: {target}: {why}", page.name()))
        })
        .collect();
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn the_book_has_every_page_once_and_begins_with_its_introduction() {
    let pages = page::all();
    let book = page::repository().join("docs");
    let summary = pages.iter().find(|it| it.path == book.join("SUMMARY.md")).expect("a summary");
    let listed: Vec<PathBuf> = summary.links().map(|(_, target)| book.join(target)).collect();
    assert_eq!(listed.first(), Some(&book.join("introduction.md")));
    let mut sorted = listed.clone();
    sorted.sort();
    let in_book = pages.iter().map(|it| it.path.clone());
    let there: Vec<PathBuf> =
        in_book.filter(|it| it.starts_with(&book) && *it != summary.path).collect();
    assert_eq!(sorted, there);
}

#[test]
fn links_that_lead_nowhere_are_found() {
    let book = page::repository().join("docs/concepts.md");
    let page = Page::parse(&book, "# Here and there\n");
    let pages = [page];
    let dead = |target: &str| leads_nowhere(&pages[0], target, &pages).is_some();
    assert!(!dead("#here-and-there") && !dead("inside/keeper.md") && !dead("https://example.org/"));
    assert!(dead("#nowhere") && dead("nothing.md") && dead("concepts.md#nowhere"));
    assert!(dead("../README.md"), "it is not in the book");
}

fn leads_nowhere(page: &Page, target: &str, pages: &[Page]) -> Option<String> {
    if target.contains("://") {
        return None;
    }
    let (path, anchor) = target.split_once('#').map_or((target, None), |(a, b)| (a, Some(b)));
    let file = match path {
        "" => page.path.clone(),
        path => plain(&page.path.parent()?.join(path)),
    };
    if !file.exists() {
        return Some("it is not there".to_owned());
    }
    let book = page::repository().join("docs");
    if page.path.starts_with(&book) && !file.starts_with(&book) {
        return Some("it is outside of the book".to_owned());
    }
    let anchor = anchor?;
    let there = pages
        .iter()
        .find(|it| it.path == file)
        .is_some_and(|it| it.anchors().iter().any(|one| one == anchor));
    (!there).then(|| "there is no such heading".to_owned())
}

/// A path without `..`.
fn plain(path: &Path) -> PathBuf {
    let mut plain = PathBuf::new();
    for part in path.components() {
        match part {
            Component::ParentDir => {
                plain.pop();
            }
            part => plain.push(part),
        }
    }
    plain
}
